import Essentials
import FoundationEssentials
import Model

/// How a notice is carried.
enum Way: String, CaseIterable, Sendable {
    case webhook
    case email
    case push
}

/// Where a person is told.
enum Target: Equatable, Sendable {
    case webhook(SecureAddress)
    /// The address that the person logs in with.
    case email(String)
    case push(PushTarget)

    var way: Way {
        switch self {
        case .webhook: .webhook
        case .email: .email
        case .push: .push
        }
    }

    /// Made of the way and where it leads, so that a changed address is another target.
    var id: UUID {
        switch self {
        case .webhook(let address): UUID(name: "webhook \(address.text)", in: .deliveries)
        case .email(let address): UUID(name: "email \(address)", in: .deliveries)
        case .push(let browser): UUID(name: "push \(browser.endpoint)", in: .deliveries)
        }
    }
}

extension UUID {
    /// The namespace of targets and of what is sent to them. It is never changed.
    static let deliveries = UUID(
        uuid: (0x6B, 0x20, 0xD3, 0x94, 0x18, 0x5F, 0x4E, 0x7A, 0x8C, 0x41, 0x27, 0xE9, 0xB0, 0x53, 0xFA, 0x16))
}
