import Crypto
import Essentials
import FoundationEssentials
import Model
import Postgres

/// The channel of a delivery.
enum Channel: String, CaseIterable, Sendable {
    case webhook
    case email
    case push
    case apns
    case fcm
}

/// A destination of a person's notices.
enum DeliveryTarget: Equatable, Sendable {
    case webhook(SecureAddress)
    /// The address of the person's login.
    case email(String)
    case push(PushTarget)
    /// A phone or tablet.
    case device(DeviceTarget)

    var channel: Channel {
        switch self {
        case .webhook: .webhook
        case .email: .email
        case .push: .push
        case .device(let device):
            switch device.service {
            case .apns: .apns
            case .fcm: .fcm
            }
        }
    }

    /// The target's id, made from the channel and the address, so that a changed address is another target.
    var id: UUID {
        switch self {
        case .webhook(let address): UUID(name: "webhook \(address.text)", in: .deliveries)
        case .email(let address): UUID(name: "email \(address)", in: .deliveries)
        case .push(let browser): UUID(name: "push \(browser.endpoint)", in: .deliveries)
        case .device(let device): UUID(name: device.name, in: .deliveries)
        }
    }
}

extension DeviceTarget {
    fileprivate var name: String { "\(service.rawValue) \(token)" }

    /// The SHA-256 hash of service and token, by which `delivery.device` finds the device.
    var digest: Bytea { Bytea(Array(SHA256.hash(data: Array(name.utf8)))) }
}

extension UUID {
    /// The namespace of the ids of targets and shipments. Never changes.
    static let deliveries = UUID(
        uuid: (0x6B, 0x20, 0xD3, 0x94, 0x18, 0x5F, 0x4E, 0x7A, 0x8C, 0x41, 0x27, 0xE9, 0xB0, 0x53, 0xFA, 0x16))
}
