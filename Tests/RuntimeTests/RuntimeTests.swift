// RuntimeTests
