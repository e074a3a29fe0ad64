import ArgumentParser
import CommandLineSupport
import Deliveries
import Essentials
import FoundationEssentials
import Model
import Secrets
import Tenants

/// The options of `fieldpost environment deliveries set` for APNs and FCM.
struct NativePushOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Environment variable with the .p8 key for APNs.", valueName: "variable"))
    var apnsKeyFrom: String?
    @Option(help: ArgumentHelp("Id of the key for APNs.", valueName: "id")) var apnsKeyID: String?
    @Option(help: ArgumentHelp("Id of the developer team.", valueName: "id")) var apnsTeam: String?
    @Option(help: ArgumentHelp("Bundle id of the app.", valueName: "id")) var apnsTopic: String?
    @Option(
        help: ArgumentHelp(
            "Server of APNs; for development builds https://api.sandbox.push.apple.com.", valueName: "url"))
    var apnsServer: String?
    @Flag(help: "Disable APNs, and delete its key.") var noApns = false
    @Option(
        help: ArgumentHelp(
            "Environment variable with the JSON key of FCM's service account.", valueName: "variable"))
    var fcmAccountFrom: String?
    @Option(help: ArgumentHelp("Server of FCM.", valueName: "url")) var fcmServer: String?
    @Flag(help: "Disable FCM, and delete its key.") var noFcm = false

    /// Whether a service is configured and disabled.
    var contradicts: Bool {
        noApns && (apnsKeyFrom ?? apnsKeyID ?? apnsTeam ?? apnsTopic ?? apnsServer) != nil
            || noFcm && (fcmAccountFrom ?? fcmServer) != nil
    }

    func validate() throws {
        for (option, id) in [("--apns-key-id", apnsKeyID), ("--apns-team", apnsTeam)] {
            if let id, id.utf8.count != 10 || !id.utf8.allSatisfy(Self.isLetterOrDigit) {
                throw ValidationError("\(option) \(id) is not 10 letters and digits")
            }
        }
        if let apnsTopic, !Self.isBundleID(apnsTopic) {
            throw ValidationError("--apns-topic \(apnsTopic) is not a bundle id such as com.example.app")
        }
        for (option, url) in [("--apns-server", apnsServer), ("--fcm-server", fcmServer)] {
            if let url, SecureAddress(url) == nil || url.dropFirst(8).contains(where: { $0 == "/" || $0 == "?" }) {
                throw ValidationError("\(option) \(url) is not https://host or https://host:port")
            }
        }
    }

    /// Apple: letters, digits, hyphens and full stops.
    private static func isBundleID(_ text: String) -> Bool {
        1...155 ~= text.utf8.count
            && text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        Base64URL.contains(byte) && byte != UInt8(ascii: "-") && byte != UInt8(ascii: "_")
    }

    /// Applies the given options; the others keep their stored values.
    func apply(to settings: inout DeliverySettings) throws {
        if noApns { settings.apns = nil }
        if noFcm { settings.fcm = nil }
        try applyAPNs(to: &settings)
        try applyFCM(to: &settings)
    }

    private func applyAPNs(to settings: inout DeliverySettings) throws {
        guard (apnsKeyFrom ?? apnsKeyID ?? apnsTeam ?? apnsTopic ?? apnsServer) != nil else { return }
        let stored = settings.apns
        guard let topic = apnsTopic ?? stored?.topic, let team = apnsTeam ?? stored?.team,
            let keyID = apnsKeyID ?? stored?.keyID
        else { throw CommandFailure("APNs needs --apns-topic, --apns-team, --apns-key-id and --apns-key-from") }
        var key = stored?.key
        if let apnsKeyFrom {
            let text = try SecretOptions.value(of: apnsKeyFrom)
            guard APNsSender(key: text, keyID: keyID, team: team) != nil else {
                throw CommandFailure("\(apnsKeyFrom) is not the content of a .p8 file: a private key of P-256 in PEM")
            }
            key = try DeliveriesCommand.sealed(Array(text.utf8), .apns, of: settings.environment)
        }
        guard let key else { throw CommandFailure("APNs needs --apns-key-from") }
        let server = apnsServer ?? stored?.server ?? DeliverySettings.APNs.defaultServer
        settings.apns = .init(topic: topic, team: team, keyID: keyID, key: key, server: server)
    }

    private func applyFCM(to settings: inout DeliverySettings) throws {
        if let fcmServer { settings.fcm?.server = fcmServer }
        guard let fcmAccountFrom else {
            if fcmServer != nil, settings.fcm == nil { throw CommandFailure("--fcm-server needs --fcm-account-from") }
            return
        }
        let json = Array(try SecretOptions.value(of: fcmAccountFrom).utf8)
        let account: FCMAccount
        do throws(FCMAccount.FormatError) {
            account = try FCMAccount(json: json)
        } catch {
            throw CommandFailure("\(fcmAccountFrom) is not usable: \(error.description)")
        }
        let server = fcmServer ?? settings.fcm?.server ?? DeliverySettings.FCM.defaultServer
        settings.fcm = .init(
            project: account.project,
            account: try DeliveriesCommand.sealed(json, .fcm, of: settings.environment), server: server)
    }
}
