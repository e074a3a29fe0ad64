import HTTPServer
import Hummingbird
import Model
import Tenants

/// The kinds of back ends, with the services that call them and the state of their circuit breakers.
extension ConsoleAPI {
    /// The limit of open circuits of a kind, those with the most keys.
    private static let circuitCountMax = 10

    private struct BackEnd: Encodable {
        let kind: String
        let environmentCount: Int64
        /// The services that call it.
        let callers: [String]
        /// The number of open circuits; `nil` if the last collection cycle did not read them.
        let openCount: Int?
        let circuits: [MonitorStore.OpenCircuit]

        init(_ summary: BackEndSummary, _ circuits: [MonitorStore.OpenCircuit]?) {
            (kind, environmentCount) = (summary.kind, summary.environmentCount)
            let callers = summary.kind == BackEndSummary.trackerKind ? Services.trackerCallers : Services.backEndCallers
            self.callers = callers.map(\.name)
            let open = circuits?.filter { circuit in
                summary.environments.contains(circuit.environment) && callers.contains { $0.name == circuit.group }
            }
            openCount = open?.count
            self.circuits = Array((open ?? []).prefix(ConsoleAPI.circuitCountMax))
        }
    }

    @concurrent func backEnds(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct BackEndPage: Encodable { let backEnds: [BackEnd] }
        _ = try gate.authenticate(request, context)
        let circuits = board.snapshot.circuits
        let names = Set((circuits ?? []).map(\.environment)).sorted()
        let summaries = try await database.run { try BackEndSummary.all(of: names, on: &$0) }
        return try Response.json(BackEndPage(backEnds: summaries.map { BackEnd($0, circuits) }))
    }
}

extension Services {
    /// The services that call environments' back ends.
    fileprivate static let backEndCallers = [realmInitializer, entrySubmitter, backendPoller]
    /// The services that call defect trackers.
    fileprivate static let trackerCallers = [defectNotifier, defectSubmitter]
}
