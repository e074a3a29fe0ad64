package import Model

extension LocalCluster {
    /// A process of the cluster that can be started, killed and asked by itself; the database is one as well.
    package struct Part: Hashable, Sendable {
        /// The name of its log, and of its port in `.fieldpost/ports`.
        package let name: String
        /// What it is a further instance of; `nil` for all others.
        private let firstName: String?

        private init(_ name: String, instanceOf first: String? = nil) {
            self.name = name
            firstName = first
        }

        /// The first instance of a service.
        package init(_ service: ServiceDescription) { self.init(service.name) }

        /// Another process of the same service. No phone knows a second gateway; a second onboarding is behind the
        /// first one's address.
        package var second: Part { instance(2) }

        /// One of several processes of the same service; the first is itself.
        package func instance(_ number: Int) -> Part {
            number == 1 ? self : Part("\(name)-\(number)", instanceOf: name)
        }

        /// What it is a further instance of, or itself.
        var first: Part { firstName.map { Part($0) } ?? self }

        /// Its row of the catalogue; `nil` for what is no service.
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
        /// The stand-ins for what is not Fieldpost's: each is `sandbox` with a subcommand of its name.
        package static let standIns: [Part] = [.broker, .identity, .sap, .economic, .compass]

        /// The first instance of every service.
        package static let services = Services.all.map { Part($0) }
        /// The services on the way of an entry, from a phone to the back end.
        package static let wayOfAnEntry: [Part] = [.relay, .gateway, .initializer, .submitter]
        /// The services that the demo needs.
        package static let ofTheDemo = wayOfAnEntry + [.taskFanOut, .locationFanOut, .shareFanOut]
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
