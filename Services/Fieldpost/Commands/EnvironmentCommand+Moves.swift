import ArgumentParser
import Commands
import Moving

extension EnvironmentCommand {
    /// `fieldpost environment moves`: which environments move from or to this installation, and what is to be done.
    struct Moves: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the environments that leave or arrive here, or did, and what is to be done next.",
            discussion: "Whatever a command of a move printed and was lost is said again as it tells here.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let moves = try MoveStore.list(on: &connection)
            var table = Table(
                [("ENVIRONMENT", .left), ("STATE", .left), ("SINCE", .left), ("NEXT", .left)],
                empty: "no environment moves, or did")
            for move in moves {
                table.add([move.environment, move.state, "\(move.since)", Self.next(move)])
            }
            try output.show(moves, table)
        }

        private static func next(_ move: MoveStore.Row) -> String {
            switch MoveState(rawValue: move.state) {
            case .copying: "export copies it, or was ended: export again, or take-back"
            case .held: "nobody can write it: leave with import's receipt; or export again, or take-back"
            case .left where move.discardedAt != nil: "it has gone\(to(move)); what stayed was removed, or begun to be"
            case .left: "it has gone\(to(move)): discard, when it works there"
            case .arriving:
                "import reads it, or was ended: at the old place export"
                    + (move.resume.map { " --resume \($0)" } ?? "")
            case .whole: "begin with leave's permission; import says its receipt again"
            case .begun: "nothing: it works here"
            case nil: "-"
            }
        }

        private static func to(_ move: MoveStore.Row) -> String { move.movedTo.map { " to \($0)" } ?? "" }
    }
}
