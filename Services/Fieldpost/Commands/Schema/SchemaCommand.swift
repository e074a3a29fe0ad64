import ArgumentParser

/// `fieldpost schema`: schema files of own kinds, and definitions of the kinds for apps.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Declare an environment's own kinds, and generate definitions for apps.",
        subcommands: [
            Validate.self, Diff.self, Apply.self, Show.self, History.self, Import.self, Generate.self,
        ])

    struct Generate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Generate source code for apps.", subcommands: [PowerSync.self])
    }

    struct PowerSync: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "powersync", abstract: "Generate the tables and views of an app with a PowerSync SDK.",
            discussion: """
                Prints the tables of the kinds that devices can read, with a column for each field, and statements for \
                the views of lists and objects. With sql it prints the statements only. The command needs no settings.
                """)
        @Option(help: "Language of the app.") var language: SchemaLanguage

        func run() { print(language.source(of: TableDescription.ofDevices), terminator: "") }
    }
}

extension SchemaLanguage: ExpressibleByArgument {}
