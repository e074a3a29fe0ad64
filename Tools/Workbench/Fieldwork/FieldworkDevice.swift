import DeviceClient
import Model

/// A person's device in a scenario, on either protocol.
protocol FieldworkDevice: Actor {
    nonisolated var person: Organisation.Person { get }
    nonisolated var realm: RealmPath { get }
    var isOnline: Bool { get }
    /// The objects as the person sees them, by realm.
    var contents: [RealmPath: RealmContent] { get }
    /// The objects that must equal the server's after convergence, by realm.
    var received: [RealmPath: RealmContent] { get }
    /// All realms that were ever opened.
    var opened: Set<RealmPath> { get }
    /// Mutations that have no answer yet.
    var waitingCount: Int { get }
    /// Lines and responses that the protocol does not permit.
    var violations: [String] { get }

    func enqueue(_ mutations: [Mutation], in path: RealmPath?) throws
    /// Returns the responses since the last call.
    func takeAnswers() -> [AnsweredMutation]
    func goOffline()
    func goOnline()
    /// Runs until the task is cancelled.
    func run() async throws
}

/// A mutation and the server's result.
struct AnsweredMutation: Sendable {
    let realm: RealmPath
    let mutation: Mutation
    let outcome: MutationOutcome?
}

extension Device: FieldworkDevice {
    var received: [RealmPath: RealmContent] { copy.contents }
    var violations: [String] { [] }

    func takeAnswers() -> [AnsweredMutation] {
        takeUpdates().answers.map {
            AnsweredMutation(realm: $0.realm, mutation: $0.mutation, outcome: $0.outcome)
        }
    }
}
