import Access
import Essentials
import HTTPServer
import Hummingbird
import Model
import ObjectStore
import Synchronization

/// `POST /v1/mutations` and `POST /v1/uploads`.
final class MutationsRoute: Sendable {
    private let authentication: Authentication
    private let limits: GatewayLimits
    private let kinds: KindDirectory
    private let makeCommit: @Sendable (EnvironmentID) -> GroupCommit
    private let commits = Mutex<[EnvironmentID: GroupCommit]>([:])

    init(
        authentication: Authentication, limits: GatewayLimits, kinds: KindDirectory,
        makeCommit: @escaping @Sendable (EnvironmentID) -> GroupCommit
    ) {
        self.authentication = authentication
        self.limits = limits
        self.kinds = kinds
        self.makeCommit = makeCommit
    }

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let (login, body) = try await read(request, context)
        return try await respond(to: login, number: "sequence") { catalogue in
            let mutations = try MutationRequest(
                body, by: login, traceparent: TraceContext.current, countMax: limits.mutationCountMax,
                catalogue: catalogue)
            guard !mutations.mutations.isEmpty else { throw Problems.malformed("'mutations' is empty.") }
            return mutations
        }
    }

    /// `POST /v1/uploads`: the queue of a client of the PowerSync protocol. Without entries, it returns the number that
    /// is expected next.
    @concurrent func handleUploads(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let (login, body) = try await read(request, context)
        return try await respond(to: login, number: "op_id") { catalogue in
            try MutationRequest(
                uploads: body, by: login, traceparent: TraceContext.current, countMax: limits.mutationCountMax,
                catalogue: catalogue)
        }
    }

    private func read(_ request: Request, _ context: EdgeContext) async throws -> (Login, [UInt8]) {
        let login = try await authentication.login(request, context)
        return (login, try await JSONBody.read(request, bytesMax: limits.mutationsBodyBytesMax))
    }

    /// Maximum number of versions of the environment's kinds by which a request is parsed before 503.
    private static let attemptsMax = 4

    /// - Parameter parse: Parses the body by the environment's kinds: again if these have changed meanwhile.
    func respond(
        to login: Login, number: String, _ parse: (KindCatalogue) throws -> MutationRequest
    ) async throws -> Response {
        let environment = login.caller.environment
        for attempt in 0..<Self.attemptsMax {
            var request = try parse(
                attempt == 0 ? kinds.loaded(in: environment) : try await kinds.load(environment))
            // Own kinds cannot be decided without a version: none was loaded, or it was evicted.
            if request.kindsVersion == KindCatalogue.unloaded.version {
                request = try parse(try await kinds.load(environment))
            }
            let outcome = try await mappingDatabaseErrors { try await commit(environment).submit(request) }
            switch outcome {
            case .gap(let expected): throw Problems.sequenceGap(expected: expected)
            case .conflicted: throw Problems.busy
            case .callerRemoved: throw Problems.keyUnknown
            case .kindsChanged: continue
            case .results(let results, let next): return Self.response(request, results, number: number, next: next)
            }
        }
        throw Problems.busy
    }

    private func commit(_ environment: EnvironmentID) -> GroupCommit {
        commits.withLock { commits in
            if let commit = commits[environment] { return commit }
            let commit = makeCommit(environment)
            commits[environment] = commit
            return commit
        }
    }

    private static func response(
        _ request: MutationRequest, _ results: [MutationResult], number: String, next: Int64
    ) -> Response {
        let list = zip(request.mutations, results).map { mutation, result in
            let member: (name: String, value: [UInt8]) =
                switch result {
                case .success(let position): ("accepted", JSONObject.bytes(of: [("position", digits(position))]))
                case .failure(let rejection): ("rejected", rejection.problem)
                }
            return JSONObject.bytes(of: [(number, digits(mutation.sequence)), (member.name, member.value[...])])
        }
        return .json(
            bytes: JSONObject.bytes(of: [
                ("results", JSONText.array(of: list)[...]), ("expectedSequence", digits(next)),
            ]))
    }

    private static func digits(_ number: Int64) -> ArraySlice<UInt8> { Array(String(number).utf8)[...] }
}
