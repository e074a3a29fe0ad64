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
            abstract: "Generate source code for apps.",
            subcommands: [PowerSync.self, GenerateSwift.self, GenerateTypeScript.self, GenerateKotlin.self])
    }

    struct PowerSync: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "powersync", abstract: "Generate the tables and views of an app with a PowerSync SDK.",
            discussion: """
                Prints the tables of the kinds that devices can read, with a column for each field, and statements for \
                the views of lists and objects. With sql it prints the statements only. The command needs no settings.
                """)
        @Option(help: "Language of the app.") var language: SchemaLanguage
        @Option(help: "Schema file of own kinds, to include their tables.", completion: .file()) var kinds: String?

        func run() throws {
            let own = try kinds.map { TableDescription.all(in: try KindsFile.kinds($0)) } ?? []
            print(language.source(of: TableDescription.ofDevices + own), terminator: "")
        }
    }

    struct GenerateSwift: ParsableCommand {
        static let configuration = TypeLanguage.swift.configuration("an app with DeviceClient")
        @OptionGroup var input: TypesInput

        func run() throws { try input.printTypes(.swift) }
    }

    struct GenerateTypeScript: ParsableCommand {
        static let configuration = TypeLanguage.typescript.configuration("an app with fieldpost.js")
        @OptionGroup var input: TypesInput

        func run() throws { try input.printTypes(.typescript) }
    }

    struct GenerateKotlin: ParsableCommand {
        static let configuration = TypeLanguage.kotlin.configuration("an app with the PowerSync SDK for Kotlin")
        @OptionGroup var input: TypesInput

        func run() throws { try input.printTypes(.kotlin) }
    }

    /// The schema file whose kinds have types.
    struct TypesInput: ParsableArguments {
        @Argument(help: "The schema file.", completion: .file()) var file: String

        func printTypes(_ language: TypeLanguage) throws {
            let (value, kinds) = try KindsFile.read(file)
            print(language.source(of: TypedKind.all(in: value, kinds)), terminator: "")
        }
    }
}

extension TypeLanguage {
    fileprivate func configuration(_ app: String) -> CommandConfiguration {
        CommandConfiguration(
            commandName: rawValue, abstract: "Generate types of own kinds for \(app).",
            discussion: """
                Prints a type for the objects of each kind in a schema file, and types for the writes that people may \
                do. Fields that people may not write are no parameters. The command needs no settings.
                """)
    }
}

extension SchemaLanguage: ExpressibleByArgument {}
