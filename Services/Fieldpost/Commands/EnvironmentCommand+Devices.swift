import ArgumentParser
import Environments
import Model
import Postgres

extension EnvironmentCommand {
    /// `fieldpost environment devices`: which devices come back without their person's login.
    struct Devices: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices that renew their token by themselves.",
            discussion: "environment revoke NAME EMAIL --device NUMBER shuts one of them out.")
        @Argument(help: "The environment.") var name: String
        @Argument(help: "E-mail addresses; everybody's devices without them.") var emails: [String] = []
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        private struct Device: Encodable {
            let number: Int64
            let email: String
            /// What it calls itself.
            let device: String
            /// When it, or its person, came last.
            let usedAt: String
        }

        func run() throws {
            var connection = try database.connect()
            guard let environment = try EnvironmentStore.load(name, on: &connection)?.id else {
                throw CommandFailure("there is no environment \(name)")
            }
            let people =
                emails.isEmpty ? nil : try EnvironmentStore.people(emails, in: environment, on: &connection)
            let devices = try connection.run(
                """
                SELECT t.id, p.email, t.device_name, to_char(t.used_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                FROM onboarding.refresh_token t
                JOIN access.person p ON p.environment_id = t.environment_id AND p.id = t.person_id
                WHERE t.environment_id = \(environment.rawValue) AND t.newest IS NOT NULL AND t.revoked_at IS NULL
                    AND (\(people == nil) OR t.person_id = ANY (\(people ?? [])))
                ORDER BY p.email, t.id
                """
            ).map { row in
                Device(
                    number: try row.value(0), email: try row.value(1), device: try row.value(2),
                    usedAt: try row.value(3))
            }
            var table = Table(
                [("NUMBER", .right), ("PERSON", .left), ("LAST USED", .left), ("DEVICE", .left)], empty: "no device")
            for device in devices { table.add([String(device.number), device.email, device.usedAt, device.device]) }
            try output.show(devices, table)
        }
    }
}
