// BackendsTests
