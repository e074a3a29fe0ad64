import ArgumentParser
import Glibc
import Logging
import ServiceRuntime
import Telemetry

/// `sandbox identity`: an identity provider that issues tokens to every caller. Not for production.
struct IdentityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identity",
        abstract: "Emulate an OpenID provider with a login page.")

    @Option(help: "Address to listen on.") var host = "127.0.0.1"
    @Option(help: "Port to listen on; 0 takes a free one.") var port = 8081
    @Option(help: "Issuer in discovery and tokens; http://HOST:PORT unless given.") var issuer: String?
    @Option(help: "Audience of tokens whose request has none.") var audience = "fieldpost"
    @Option(help: "Password of all people.") var password = "sandbox"
    @Option(
        name: .customLong("client"),
        help: ArgumentHelp("Application that may request logins; may be repeated.", valueName: "id,secret,redirect"))
    var clients: [String] = []
    @Option(
        name: .customLong("integration"),
        help: ArgumentHelp("Client that gets tokens of its own; may be repeated.", valueName: "id,secret"))
    var integrations: [String] = []
    @Option(help: "File that keeps the keys over a restart.") var keyFile: String

    func validate() throws {
        guard (0...65535).contains(port) else { throw ValidationError("--port must be from 0 to 65535") }
        _ = try applications()
        guard port != 0 || issuer != nil else { throw ValidationError("--port 0 needs --issuer") }
    }

    func run() async throws {
        LoggingSystem.bootstrap {
            LineLogHandler(label: $0, service: "sandbox-identity", level: .info, format: .json)
        }
        let provider = IdentityProvider(
            issuer: issuer ?? "http://\(host):\(port)", audience: audience,
            keys: try await IdentityKeys.load(from: keyFile),
            state: IdentityState(password: password, clients: try applications()))
        let status = await ServiceRuntime.run(
            [.http("identity", host: host, port: port, routes: provider.addRoutes)],
            logger: Logger(label: "sandbox-identity"), health: Health(stallMax: .seconds(60)), shutdownMax: .seconds(5))
        throw ExitCode(status)
    }

    private func applications() throws -> [IdentityClient] {
        try (clients.map { ($0, 3) } + integrations.map { ($0, 2) }).map { text, count in
            let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == count else {
                throw ValidationError("'\(text)' is not \(count) texts separated by commas")
            }
            return count == 3
                ? IdentityClient(id: parts[0], secret: parts[1], redirectURIs: [parts[2]])
                : IdentityClient(id: parts[0], secret: parts[1], roles: ["integration"])
        }
    }
}
