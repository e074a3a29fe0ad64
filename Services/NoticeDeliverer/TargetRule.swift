import Essentials
import FoundationEssentials
import Model
import Tenants

/// Where a person is told of notices: what they chose, as far as their environment offers it.
enum TargetRule {
    /// - Parameters:
    ///   - settings: `nil`: nothing is offered.
    ///   - email: The address that the person logs in with.
    static func targets(_ choice: DeliveryChoice?, _ settings: DeliverySettings?, email: String) -> [Target] {
        guard let choice, let settings else { return [] }
        var targets: [Target] = []
        if let address = choice.webhook.flatMap(SecureAddress.init), settings.allows(webhook: address) {
            targets.append(.webhook(address))
        }
        if choice.email, settings.mailServer != nil { targets.append(.email(email)) }
        if settings.pushContact != nil { targets += choice.pushes.map { .push($0) } }
        return targets
    }

    /// What of a choice cannot be done, as a sentence; `nil`: all can.
    static func objection(
        _ choice: DeliveryChoice, _ settings: DeliverySettings?, isZoneKnown: Bool
    ) -> String? {
        if let address = choice.webhook.flatMap(SecureAddress.init), settings?.allows(webhook: address) != true {
            return "choice: webhooks to \(address.host) are not allowed here"
        }
        if choice.email, settings?.mailServer == nil { return "choice: there is no e-mail here" }
        if !choice.pushes.isEmpty, settings?.pushContact == nil { return "choice: there is no web push here" }
        return isZoneKnown ? nil : "choice: the time zone \(choice.timeZone ?? "") is not known, so UTC counts"
    }
}
