import Foundation
import LocalCluster
import Model
import ProjectDocuments
import TestSupport
import Testing
import Yams

/// The deployment files contain exactly the services of the catalogue, with their ports and requirements.
@Suite(.ownThreads) struct DeploymentTests {
    private static let names = Set(Services.all.map(\.name))

    /// The configurations of the services, by the kind of deployment files.
    private static let files: [(name: String, read: @Sendable () throws -> [String: Deployed])] = [
        ("compose", Deployment.compose), ("systemd", Deployment.systemd), ("kubernetes", Deployment.kubernetes),
    ]

    @Test(arguments: files.map(\.name)) func everyServiceIsRunAtItsPorts(files name: String) throws {
        let deployed = try #require(Self.files.first { $0.name == name }).read()
        #expect(Set(deployed.keys) == Self.names)
        for service in Services.all {
            let found = try #require(deployed[service.name])
            #expect(found.program == service.name)
            #expect(found.variables["FIELDPOST_ADMIN_PORT"] == "\(service.localAdminPort)", "\(service.name)")
            let port = service.endpoint.map { "\($0.localPort)" }
            #expect(found.variables["FIELDPOST_HTTP_PORT"] == port, "\(service.name)")
            for needed in service.localSettings.keys { #expect(found.variables[needed] != nil, "\(service.name)") }
        }
    }

    /// A setting that a service does not have keeps it from starting, unless others share it.
    @Test(arguments: files.map(\.name)) func settingsAreThoseOfTheService(files name: String) throws {
        let deployed = try #require(Self.files.first { $0.name == name }).read()
        let settings = try Dictionary(
            uniqueKeysWithValues: Self.names.map { ($0, try SettingReference.variables(of: $0)) })
        let shared: Set = ["FIELDPOST_KAFKA_BROKERS", "FIELDPOST_SECRET_KEYS"]
        for (service, found) in deployed {
            let own = try #require(settings[service])
            for variable in found.variables.keys where variable.hasPrefix("FIELDPOST_") {
                #expect(own.contains(variable) || shared.contains(variable), "\(service) has no \(variable)")
            }
            #expect(found.variables["FIELDPOST_DATABASE_URL"] != nil, "\(service)")
            // One file sets it for a whole machine; otherwise only services that open secrets get it.
            if own.contains("FIELDPOST_SECRET_KEYS") || name != "systemd" {
                let isGiven = found.variables["FIELDPOST_SECRET_KEYS"] != nil
                #expect(isGiven == own.contains("FIELDPOST_SECRET_KEYS"), "\(service): secret keys")
            }
        }
    }

    /// Variables of the image apply to all of its programs, which reject unknown variables.
    @Test func imageContainsThePrograms() throws {
        let file = try #require(projectText("deploy/Containerfile")).replacing(/\\\n */, with: "")
        let programs = try #require(file.firstMatch(of: /ARG programs="([^"]+)"/)?.1).split(separator: " ")
        #expect(Set(programs.map(String.init)) == Self.names.union(["fieldpost"]))
        #expect(programs.count == Self.names.count + 1)
        for service in Self.names {
            let own = try SettingReference.variables(of: service)
            for variable in file.matches(of: /(FIELDPOST_[A-Z_]+)=/) {
                #expect(own.contains(String(variable.1)), "\(service) has no \(variable.1)")
            }
        }
        let place = try #require(file.firstMatch(of: /COPY deploy\/schema (\S+)/)?.1)
        for path in ["deploy/compose.yaml", "deploy/kubernetes/setup/migration.yaml"] {
            #expect(projectText(path)?.contains("[fieldpost, migrate, --schema, \(place)]") == true, "\(path)")
        }
    }

    /// The image and the package have the field app in the same folder, which the settings' examples name.
    @Test func examplesNameTheFolderOfTheApp() throws {
        let file = try #require(projectText("deploy/Containerfile"))
        let folder = try #require(file.firstMatch(of: /COPY --from=build \/app (\S+)/)?.1)
        for path in ["deploy/systemd/onboarding.env", "deploy/compose.env.example"] {
            #expect(projectText(path)?.contains("#FIELDPOST_ONBOARDING_APP_FOLDER=\(folder)\n") == true, "\(path)")
        }
        #expect(projectText("deploy/package")?.contains("install_app \"$tree\(folder)\"") == true)
        #expect(projectText("docs/operators/deployment.md")?.contains("folder=\(folder) ") == true)
    }

    @Test func prometheusScrapesEveryService() throws {
        let jobs = try ProjectDocument("deploy/prometheus/prometheus.yaml").root["scrape_configs"]?.sequence
        var ports: [String: Int] = [:]
        for job in try #require(jobs) {
            let name = try #require(job["job_name"]?.string)
            #expect(job["dns_sd_configs"]?[0]?["names"]?.texts == [name])
            ports[name] = job["dns_sd_configs"]?[0]?["port"]?.int
        }
        #expect(ports == Dictionary(uniqueKeysWithValues: Services.all.map { ($0.name, $0.localAdminPort) }))
        let rules = try #require(projectText("deploy/prometheus/fieldpost.rules.yaml"))
        let scraped = try #require(rules.firstMatch(of: /up\{job=~"([^"]+)"\}/)?.1)
        #expect(Set(scraped.split(separator: "|").map(String.init)) == Set(ports.keys))
    }

    /// Dashboards, alert rules and scaling triggers query only exported metrics.
    @Test func queriedMetricsAreExported() throws {
        let help = try #require(projectText("Shared/Platform/Telemetry/MetricsHelp.swift"))
        let labels = ["messaging_consumer_group_name", "fieldpost_runbooks"]
        let made = Set(help.matches(of: /"([a-z_]+)":/).map { String($0.1) }).union(labels)
        let folders = ["deploy/grafana/dashboards", "deploy/kubernetes/services", "deploy/prometheus"]
        var queried: Set<String> = []
        for folder in folders {
            let path = projectFolder.appendingPathComponent(folder).path
            for file in try FileManager.default.contentsOfDirectory(atPath: path) {
                let text = try #require(projectText("\(folder)/\(file)"))
                for name in text.matches(of: /\b(?:fieldpost|kafka|messaging|process|http_server|worker)_[a-z_]+/) {
                    let name = name.output.replacing(/_(?:bucket|sum|count)$/, with: "")
                    queried.insert(made.contains(String(name)) ? String(name) : "\(name), in \(file)")
                }
            }
        }
        #expect(queried.subtracting(made) == [])
        #expect(queried.count > 20)
    }
}
