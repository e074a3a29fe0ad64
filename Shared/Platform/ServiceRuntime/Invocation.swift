
/// What the arguments of a service ask for. A service has no others: all else is configuration.
enum Invocation: Equatable {
    case run(configurationFile: String?)
    case help
    case version
    case printConfiguration(file: String?)
    /// For programs: what can be set.
    case printSettings

    /// Arguments that mean nothing; reported in one line, with exit status 2.
    struct UsageError: Error, Equatable {
        let message: String
    }

    /// - Parameter arguments: Without the program's name.
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
                guard let path = rest.popFirst() else { throw UsageError(message: "--config needs a file") }
                file = path
            case _ where argument.hasPrefix("--config="):
                file = String(argument.dropFirst("--config=".count))
            default:
                throw UsageError(
                    message: "unknown argument \(argument); known are --config FILE, --print-config, --print-settings, "
                        + "--help, --version")
            }
        }
        self = isPrinting ? .printConfiguration(file: file) : .run(configurationFile: file)
    }
}
