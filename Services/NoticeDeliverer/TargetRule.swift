import Essentials
import FoundationEssentials
import Model
import Tenants

/// The targets of a person's notices: those of their choice that their environment offers.
enum TargetRule {
    /// - Parameters:
    ///   - settings: `nil`: no channel is available.
    ///   - email: The address of the person's login.
    ///   - isActive: Whether the credential of a device is not revoked.
    static func targets(
        _ choice: DeliveryChoice?, _ settings: DeliverySettings?, email: String, isActive: (DeviceTarget) -> Bool
    ) -> [DeliveryTarget] {
        guard let choice, let settings else { return [] }
        var targets: [DeliveryTarget] = []
        if let address = choice.webhook.flatMap(SecureAddress.init), settings.allows(webhook: address) {
            targets.append(.webhook(address))
        }
        if choice.email, settings.mailServer != nil { targets.append(.email(email)) }
        if settings.pushContact != nil { targets += choice.pushes.map { .push($0) } }
        let devices = choice.devices.filter { settings.offers($0.service) && isActive($0) }
        targets += devices.map { .device($0) }
        return targets
    }

    /// Returns the first part of a choice that is unavailable, as a sentence; `nil`: there is none.
    static func choiceError(_ choice: DeliveryChoice, _ settings: DeliverySettings?, isTimeZoneValid: Bool) -> String? {
        if let address = choice.webhook.flatMap(SecureAddress.init), settings?.allows(webhook: address) != true {
            return "choice: webhooks to \(address.host) are not allowed in this environment"
        }
        if choice.email, settings?.mailServer == nil { return "choice: e-mail is not available in this environment" }
        if !choice.pushes.isEmpty, settings?.pushContact == nil {
            return "choice: web push is not available in this environment"
        }
        if let device = choice.devices.first(where: { settings?.offers($0.service) != true }) {
            return "choice: \(device.service.rawValue) is not available in this environment"
        }
        return isTimeZoneValid ? nil : "choice: unknown time zone \(choice.timeZone ?? ""); UTC is used"
    }
}
