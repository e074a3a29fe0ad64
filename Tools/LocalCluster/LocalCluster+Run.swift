import Foundation
import HTTPClient

extension LocalCluster {
    /// Runs `body` on a new cluster, and stops the cluster afterwards. If `body` throws, diagnostics are printed.
    package static func run<Success>(
        _ name: String, _ options: Options, _ body: (LocalCluster) async throws -> Success
    ) async throws -> Success {
        let cluster = try await LocalCluster(name, options)
        do {
            let result = try await body(cluster)
            await cluster.stop()
            return result
        } catch {
            await cluster.printDiagnostics()
            await cluster.stop()
            throw error
        }
    }

    /// Prints the end of each service's log, and its health.
    package func printDiagnostics() async {
        for part in options.services {
            print("--- \(part.name)\n\(process(part)?.logTail() ?? "")")
            do {
                let url = adminURL(part) + "/health/ready"
                let response = try await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
                print("\(response.status) \(String(decoding: response.body, as: UTF8.self))")
            } catch {
                print("health: \(error)")
            }
        }
        // The error that is printed next goes to another stream.
        fflush(nil)
    }

    /// Starts `workbench demo` on the cluster.
    ///
    /// - Parameter log: The name of its log; `nil`: its output is this process's.
    package func startDemo(
        _ options: [String], log: String? = "demo", hasCompass: Bool = false
    ) throws -> ClusterProcess {
        let addresses = [
            "--gateway", gatewayURL, "--identity", identityURL, "--sap", sapURL, "--database", conninfo,
        ]
        let compass = hasCompass ? ["--compass", compassURL] : []
        return try startCommand(["demo"] + addresses + compass + options, of: "workbench", log: log)
    }
}
