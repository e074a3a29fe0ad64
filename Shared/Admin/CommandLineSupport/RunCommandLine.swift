package import ArgumentParser
import Glibc

/// Runs a command-line program: `main.swift` is one call of it.
///
/// This is a separate module, so that the services, which have settings instead of arguments, do not link
/// ArgumentParser.
///
/// - Returns: Never. The exit status is 0, 1 for a failure, 2 for invalid arguments, or that of an `ExitCode` thrown by
///   the command. A failure is one line on standard error.
package func runCommandLine(_ root: any ParsableCommand.Type) async -> Never {
    do {
        var command = try root.parseAsRoot()
        if var asynchronous = command as? any AsyncParsableCommand {
            try await asynchronous.run()
        } else {
            try command.run()
        }
        exit(0)
    } catch let code as ExitCode {
        exit(code.rawValue)
    } catch {
        let code = root.exitCode(for: error)
        guard code != .success else {
            print(root.fullMessage(for: error))
            exit(0)
        }
        let message = root.message(for: error).split(separator: "\n").joined(separator: " ")
        let name = root._commandName
        fputs("\(name): \(message.isEmpty ? "failed; see \(name) --help" : message)\n")
        exit(code == .validationFailure ? 2 : 1)
    }
}

private func fputs(_ line: String) {
    let bytes = Array(line.utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
}
