import BackendProtocol
import Essentials
import HTTPClient
import TestSupport
import Testing

@testable import Backends

@Suite(.ownThreads) struct TextUnitTests {
    @Test(arguments: BackendKind.all.map(\.name)) func textLimitIsConfigurable(kind: String) throws {
        let client = Client()
        defer { client.shutDown() }
        let kind = try #require(BackendKind.named(kind))
        func limit(_ settings: [String: String]) throws -> TextLimit {
            try kind.adapter(
                BackendKind.Access(
                    url: "http://127.0.0.1:1", user: "u", password: "a:b", templates: nil, settings: settings,
                    client: client, callMax: .seconds(1), today: { Day(daysSinceEpoch: 0) })
            ).capabilities.textLimit
        }
        #expect(try limit([:]) == TextLimit(40, .utf16))
        #expect(try limit(["textLengthMax": "12", "textUnit": "utf8"]) == TextLimit(12, .utf8))
        let setting = try #require(kind.vocabulary.settings.first { $0.name == "textUnit" })
        #expect(setting.problem(with: "scalars") == nil)
        #expect(setting.problem(with: "letters") == "textUnit must be one of utf16, scalars, utf8, not 'letters'")
    }
}
