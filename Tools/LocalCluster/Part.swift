package import Model

extension LocalCluster {
    /// A process of the cluster; the database counts as one.
    package struct Part: Hashable, Sendable {
        /// The name of its log, and of its port in `.fieldpost/ports`.
        package let name: String
        /// The name of the first instance; `nil` for a first instance.
        private let firstName: String?

        private init(_ name: String, instanceOf first: String? = nil) {
            self.name = name
            firstName = first
        }

        /// The first instance of a service.
        package init(_ service: ServiceDescription) { self.init(service.name) }

        /// A second process of the service. Devices do not use a second gateway; a second onboarding instance is behind
        /// the first one's address.
        package var second: Part { instance(2) }

        /// An instance of the service; number 1 is the first.
        package func instance(_ number: Int) -> Part {
            number == 1 ? self : Part("\(name)-\(number)", instanceOf: name)
        }

        /// The first instance.
        var first: Part { firstName.map { Part($0) } ?? self }

        /// Its service; `nil` for the database and emulators.
        package var service: ServiceDescription? {
            let name = first.name
            return Services.all.first { $0.name == name }
        }

        package static let database = Part("postgres")
        package static let broker = Part("broker")
        package static let identity = Part("identity")
        package static let sap = Part("sap")
        package static let economic = Part("economic")
        package static let compass = Part("compass")
        /// The emulators: each is `sandbox` with a subcommand of its name.
        package static let emulators: [Part] = [.broker, .identity, .sap, .economic, .compass]

        /// The first instance of every service.
        package static let services = Services.all.map { Part($0) }
        /// The services that process an entry, from a device to the back end.
        package static let entryServices: [Part] = [.relay, .gateway, .initializer, .submitter]
        /// The services that the demo needs.
        package static let ofTheDemo = entryServices + [.taskFanOut, .locationFanOut, .shareFanOut]
    }
}

/// Short names, for tests of one service.
extension LocalCluster.Part {
    package static let relay = Self(Services.changeRelay)
    package static let gateway = Self(Services.realmGateway)
    package static let initializer = Self(Services.realmInitializer)
    package static let submitter = Self(Services.entrySubmitter)
    package static let poller = Self(Services.backendPoller)
    package static let onboarding = Self(Services.onboarding)
    package static let taskFanOut = Self(Services.taskFanOut)
    package static let locationFanOut = Self(Services.locationFanOut)
    package static let shareFanOut = Self(Services.shareFanOut)
    package static let defectNotifier = Self(Services.defectNotifier)
    package static let defectSubmitter = Self(Services.defectSubmitter)
    package static let noticeDeliverer = Self(Services.noticeDeliverer)
}
