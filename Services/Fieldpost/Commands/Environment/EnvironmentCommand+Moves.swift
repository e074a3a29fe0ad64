import ArgumentParser
import CommandLineSupport
import TenantMigration

extension EnvironmentCommand {
    /// `fieldpost environment moves`: lists moves and their next steps.
    struct Moves: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the moves from and to this installation and the next steps.",
            discussion: """
                To print a lost receipt, repeat export and import. To print a lost activation token, repeat cut-over.
                """)
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let moves = try MoveListing.all(on: &connection)
            var table = Table(
                [("ENVIRONMENT", .left), ("STATE", .left), ("SINCE", .left), ("NEXT", .left)],
                empty: "no moves")
            for move in moves {
                table.add([move.environment, move.state.rawValue, "\(move.since)", Self.next(move)])
            }
            try output.show(moves, table)
        }

        private static func next(_ move: MoveListing) -> String {
            switch move.state {
            case .copying: "export is copying, or was interrupted: export again, or roll-back"
            case .held: "write-blocked: cut-over with import's receipt; or export again, or roll-back"
            case .left where move.discardedAt != nil: "cut over\(to(move)); discard has started or finished"
            case .left: "cut over\(to(move)): discard, once it is active there; cut-over prints its token again"
            case .arriving:
                "import is reading, or was interrupted: at the source, export \(move.environment)"
                    + (move.resume.map { " --resume \($0)" } ?? "") + "; or discard"
            case .whole: "cut-over at the source, then activate; import prints its receipt again; or discard"
            case .begun: "nothing: it is active here"
            }
        }

        private static func to(_ move: MoveListing) -> String { move.movedTo.map { " to \($0)" } ?? "" }
    }
}
