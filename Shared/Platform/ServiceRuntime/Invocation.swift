/// The parsed arguments of a service. All other settings are configuration.
enum Invocation: Equatable {
    case run(configurationFile: String?)
    case help
    case version
    case printConfiguration(file: String?)
    /// Prints the supported settings as JSON.
    case printSettings

    /// Invalid arguments; reported in one line, with exit status 2.
    struct UsageError: Error, Equatable {
        let message: String
    }

    /// - Parameter arguments: The arguments without the program's name.
    init(_ arguments: [String]) throws(UsageError) {
        var file: String?
        var isPrinting = false
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h":
                self = .help
                return
            case "--version":
                self = .version
                return
            case "--print-settings":
                self = .printSettings
                return
            case "--print-config": isPrinting = true
            case "--config":
                guard let path = rest.popFirst() else { throw UsageError(message: "--config requires a file") }
                file = path
            case _ where argument.hasPrefix("--config="):
                file = String(argument.dropFirst("--config=".count))
            default:
                throw UsageError(
                    message:
                        "unknown argument \(argument); allowed are --config FILE, --print-config, --print-settings, "
                        + "--help, --version")
            }
        }
        self = isPrinting ? .printConfiguration(file: file) : .run(configurationFile: file)
    }
}
