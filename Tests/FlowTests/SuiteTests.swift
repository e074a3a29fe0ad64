import Suite
import Testing

@Suite struct SuiteTests {
}
