import Essentials
import FoundationEssentials
import HTTPClient

/// An emulator with control routes.
protocol EmulatorControl: Sendable {
    static var name: String { get }
    var client: Client { get }
    /// Without a slash at the end.
    var url: String { get }
}

/// The control side of a back end's emulator: master data, faults, and the recorded data.
protocol DemoBackend: EmulatorControl {
    /// The name of the back end in `environment add --backend`.
    static var kind: String { get }
    static var user: String { get }
    /// The services' variable with the password of the emulator's user. It has no prefix, because it is no setting.
    static var passwordVariable: String { get }

    /// The organisation with ids of the back end that are unique to the environment.
    func placed(_ organisation: Organisation, in environment: String) -> Organisation
    /// The back end's reference of a person.
    func reference(of person: Organisation.Person) -> [String: String]
    func load(_ organisation: Organisation) async throws
    /// All records, including cancelled ones.
    func recorded() async throws -> [BackendRecord]
}

private struct LateCommits: Decodable {
    let lateCommitMs: Int?
}

/// The switches of `--faults`, and those that end it.
enum EmulatorFaults {
    /// Faults are random.
    static let random =
        #"{"rate503":0.05,"rate429":0.02,"rateLostAfterWrite":0.02,"rateLateCommit":0.01,"latencyMs":20}"#
    /// Faults are random, and each kind occurs at least once.
    static let injected =
        #"{"rate503":0.05,"rate429":0.02,"rateLostAfterWrite":0.02,"rateLateCommit":0.01,"latencyMs":20,"#
        + #""next503":1,"next429":1,"nextLostAfterWrite":1,"nextLateCommit":1}"#
    /// No faults, including those that an earlier run switched on.
    static let none =
        #"{"rate503":0,"rate429":0,"rateLostAfterWrite":0,"rateLateCommit":0,"latencyMs":0,"#
        + #""next503":0,"next429":0,"nextLostAfterWrite":0,"nextLateCommit":0}"#
}

extension EmulatorControl {
    /// - Returns: The maximum delay of a late commit, in milliseconds.
    @discardableResult
    func setSwitches(_ switches: String) async throws -> Int {
        let answer = try await send("POST", "/sandbox/switches", Array(switches.utf8))
        return try JSONDecoder().decode(LateCommits.self, from: Data(answer)).lateCommitMs ?? 0
    }

    /// Posts a value as JSON.
    ///
    /// - Returns: The body of the response.
    @discardableResult
    func post(_ path: String, _ value: some Encodable) async throws -> [UInt8] {
        try await send("POST", path, Array(try JSONEncoder().encode(value)))
    }

    /// The values of a response, one per line.
    func lines<Line: Decodable>(of path: String) async throws -> [Line] {
        let decoder = JSONDecoder()
        return try await send("GET", path).split(separator: UInt8(ascii: "\n"))
            .map { try decoder.decode(Line.self, from: Data($0)) }
    }

    func send(_ method: String, _ path: String, _ body: [UInt8]? = nil) async throws -> [UInt8] {
        let response = try await client.send(
            Request(
                method, url + path, headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
                totalMax: .seconds(120), responseBytesMax: 256 * 1024 * 1024))
        guard response.status == 200 else {
            let text = String(decoding: response.body.prefix(300), as: UTF8.self)
            throw DemoFailure("the sandbox of \(Self.name) answers \(response.status) to \(method) \(path): \(text)")
        }
        return response.body
    }
}

/// A record of SAP's `GET /sandbox/recorded`; records of e-conomic are converted to it.
struct BackendRecord: Decodable, Equatable, Sendable {
    var record: String
    /// `PersonWorkAgreementExternalID`
    var person: String
    var companyCode: String
    var date: Day
    /// Two decimals.
    var hours: String
    var note: String
    var wbsElement: String
    /// CATS: 10 in process, 20 released, 30 approved, 40 rejected, 50 changed after approval, 60 cancelled.
    var status: String

    /// Neither cancelled nor replaced by a successor.
    var isLive: Bool { status != "60" && status != "50" }
}
