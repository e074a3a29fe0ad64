// swift-tools-version:6.2
import PackageDescription

let algorithms = Target.Dependency.product(name: "Algorithms", package: "swift-algorithms")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let deque = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let hummingbirdTLS = Target.Dependency.product(name: "HummingbirdTLS", package: "hummingbird")
let jwtKit = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let nio = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioHTTPTypes = Target.Dependency.product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let nioHTTPTypesHTTP1 = Target.Dependency.product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let nioWebSocket = Target.Dependency.product(name: "NIOWebSocket", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")

/// Executable → folder in `Services/` → what it imports. One list, so a new service is one line.
let services: [(executable: String, target: String, dependencies: [Target.Dependency])] = [
    (
        "change-relay", "ChangeRelay",
        ["Environments", "Essentials", "Kafka", "Model", "Postgres", "Realms", "Runtime", "Work", logging, metrics]
    ),
    (
        "realm-gateway", "RealmGateway",
        [
            "Environments", "Essentials", "HTTP", "Identity", "Model", "Postgres", "Realms", "Runtime", crypto,
            httpTypes, hummingbird, lifecycle, logging, metrics, nio,
        ]
    ),
    (
        "onboarding", "Onboarding",
        [
            "Environments", "Essentials", "HTTP", "Identity", "Model", "Postgres", "Realms", "Runtime", crypto,
            httpTypes, hummingbird, lifecycle, logging, nio,
        ]
    ),
    (
        "realm-initializer", "RealmInitializer",
        [
            "BackendProtocol", "Catalogues", "Environments", "HTTP", "Model", "Postgres", "Realms", "Runtime", "Work",
            logging,
        ]
    ),
    (
        "entry-submitter", "EntrySubmitter",
        [
            "BackendProtocol", "Environments", "Essentials", "HTTP", "Model", "NameBasedIDs", "Postgres", "Realms",
            "Runtime", "Work",
        ]
    ),
    (
        "backend-poller", "BackendPoller",
        [
            "BackendProtocol", "Catalogues", "Environments", "Essentials", "HTTP", "Model", "Postgres", "Realms",
            "Runtime", "Work", logging, metrics,
        ]
    ),
    (
        "task-fan-out", "TaskFanOut",
        ["Environments", "Essentials", "Model", "Postgres", "Realms", "Runtime", "Work", logging]
    ),
    (
        "location-fan-out", "LocationFanOut",
        ["Environments", "Essentials", "Model", "Postgres", "Realms", "Runtime", "Work"]
    ),
    ("share-fan-out", "ShareFanOut", ["Environments", "Essentials", "Model", "Postgres", "Realms", "Runtime", "Work"]),
    (
        "defect-notifier", "DefectNotifier",
        [
            "BackendProtocol", "Compass", "Environments", "Essentials", "HTTP", "Model", "NameBasedIDs", "Postgres",
            "Realms", "Runtime", "Work", logging, metrics,
        ]
    ),
    (
        "notice-deliverer", "NoticeDeliverer",
        [
            "BackendHTTP", "Deliveries", "Environments", "Essentials", "HTTP", "Model", "NameBasedIDs", "Postgres",
            "Realms", "Runtime", "Work", crypto, logging, metrics,
        ]
    ),
    (
        "defect-submitter", "DefectSubmitter",
        [
            "BackendProtocol", "Compass", "Environments", "Essentials", "HTTP", "Model", "Postgres", "Realms",
            "Runtime", "Work",
        ]
    ),
    (
        "lag-monitor", "LagMonitor",
        [
            "Environments", "Essentials", "HTTP", "Identity", "Kafka", "Lag", "Model", "Operations", "Postgres",
            "Realms", "Runtime", "Work", crypto, httpTypes, hummingbird, lifecycle, logging, metrics, nio,
        ]
    ),
    (
        "fieldpost", "Fieldpost",
        [
            "BackendProtocol", "Backends", "Catalogues", "Commands", "Compass", "Deliveries", "Environments",
            "Essentials", "HTTP", "Identity", "ImportSources", "Kafka", "Lag", "Model", "Moving", "Operations",
            "Postgres", "Realms", "Runtime", "Work", algorithms, argumentParser, crypto,
        ]
    ),
    (
        "sandbox", "Sandbox",
        [
            "CBroker", "CKafka", "Commands", "DataFiles", "Essentials", "Model", "Runtime", argumentParser, crypto,
            cryptoExtras, httpTypes, hummingbird, jwtKit, logging, nio, nioHTTPTypes,
        ]
    ),
]

/// Files that are part of an executable: it is one file, and reads none of them.
let embedded: [String: [Resource]] = [
    "LagMonitor": ["console.css", "console.js", "icon.svg", "index.html", "views.js"].map {
        .embedInCode("Console/Page/\($0)")
    }
]

/// Who may import whom. Arrows point down, and services do not import each other.
let shared: [Target] = [
    .systemLibrary(name: "CCurl", path: "Shared/CLibraries/CCurl", pkgConfig: "libcurl"),
    .systemLibrary(name: "CKafka", path: "Shared/CLibraries/CKafka", pkgConfig: "rdkafka"),
    .systemLibrary(name: "CPostgres", path: "Shared/CLibraries/CPostgres", pkgConfig: "libpq"),
    .target(name: "CBroker", path: "Shared/CLibraries/CBroker"),
    .target(name: "Essentials", path: "Shared/Essentials"),
    .target(name: "NameBasedIDs", dependencies: [crypto], path: "Shared/NameBasedIDs"),
    .target(name: "Model", dependencies: ["Essentials"], path: "Shared/Model"),
    .target(name: "Deliveries", dependencies: ["Essentials", crypto], path: "Shared/Deliveries"),
    .target(
        name: "ImportSources", dependencies: ["Essentials", "Model", "NameBasedIDs"], path: "Shared/ImportSources"),
    .target(name: "DeviceClient", dependencies: ["Essentials", "Model"], path: "Shared/DeviceClient"),
    .target(name: "Postgres", dependencies: ["CPostgres", "Essentials", deque], path: "Shared/Postgres"),
    .target(name: "Kafka", dependencies: ["CKafka", "Essentials", deque], path: "Shared/Kafka"),
    .target(name: "Lag", dependencies: ["Essentials", "Kafka", "Runtime"], path: "Shared/Lag"),
    .target(name: "HTTP", dependencies: ["CCurl", "Essentials"], path: "Shared/HTTP"),
    .target(name: "Realms", dependencies: ["Essentials", "Model", "Postgres"], path: "Shared/Realms"),
    .target(
        name: "Work",
        dependencies: ["Essentials", "Kafka", "Model", "Postgres", "Realms", "Runtime", logging, metrics],
        path: "Shared/Work"),
    .target(name: "BackendProtocol", dependencies: ["Essentials", "Model"], path: "Shared/BackendProtocol"),
    .target(
        name: "BackendContract", dependencies: ["BackendProtocol", "Essentials", "Model"],
        path: "Shared/BackendContract"),
    .target(
        name: "BackendHTTP", dependencies: ["BackendProtocol", "Essentials", "HTTP"], path: "Shared/BackendHTTP"),
    .target(
        name: "Backends",
        dependencies: ["BackendHTTP", "BackendProtocol", "Essentials", "HTTP", "Model", "NameBasedIDs"],
        path: "Shared/Backends"),
    .target(
        name: "Compass", dependencies: ["BackendHTTP", "BackendProtocol", "Essentials", "HTTP"],
        path: "Shared/Compass"),
    .target(
        name: "CompassContract", dependencies: ["BackendContract", "BackendProtocol", "Compass"],
        path: "Shared/CompassContract"),
    .target(
        name: "Environments",
        dependencies: [
            "BackendProtocol", "Backends", "Compass", "Essentials", "HTTP", "Model", "NameBasedIDs", "Postgres",
            "Realms", crypto,
        ],
        path: "Shared/Environments"),
    .target(
        name: "Moving", dependencies: ["Environments", "Essentials", "Model", "Postgres", "Realms", crypto],
        path: "Shared/Moving"),
    .target(
        name: "Catalogues",
        dependencies: [
            "BackendProtocol", "Environments", "Essentials", "Model", "NameBasedIDs", "Postgres", "Realms", crypto,
            logging, metrics,
        ],
        path: "Shared/Catalogues"),
    .target(
        name: "Identity",
        dependencies: ["Environments", "Essentials", "HTTP", "Model", "Runtime", crypto, httpTypes, jwtKit],
        path: "Shared/Identity"),
    .target(
        name: "Operations",
        dependencies: ["BackendProtocol", "Environments", "Essentials", "Model", "Postgres", "Realms"],
        path: "Shared/Operations"),
    .target(name: "Commands", dependencies: [argumentParser], path: "Shared/Commands"),
    .target(name: "DataFiles", path: "Shared/DataFiles"),
    .target(
        name: "Runtime",
        dependencies: [
            "Essentials", "HTTP", httpTypes, hummingbird, hummingbirdCore, hummingbirdTLS, lifecycle, logging, metrics,
            nio, nioHTTP1, nioHTTPTypes, nioHTTPTypesHTTP1, nioPosix, nioSSL, nioWebSocket, signals,
        ],
        path: "Shared/Runtime"),
]

/// The tools of developers: nothing that ships imports them.
let tools: [Target] = [
    .target(
        name: "LocalCluster", dependencies: ["Essentials", "HTTP", "Model", "Postgres"], path: "Workbench/LocalCluster"),
    .executableTarget(
        name: "Workbench",
        dependencies: [
            "BackendProtocol", "Backends", "Catalogues", "Commands", "Compass", "DataFiles", "DeviceClient",
            "Environments", "Essentials", "HTTP", "Identity", "ImportSources", "Kafka", "Lag", "LocalCluster",
            "Model", "Moving", "Postgres", "Realms", "Runtime", "Work", algorithms, argumentParser, crypto, logging,
            nio, nioPosix, signals,
        ],
        path: "Workbench", exclude: ["LocalCluster"]),
]

let tests: [Target] = [
    .target(
        name: "TestSupport",
        dependencies: [
            "BackendContract", "CBroker", "CKafka", "Essentials", "HTTP", "Kafka", "LocalCluster", "Model", "Postgres",
            "Realms", "Work",
        ],
        path: "Tests/TestSupport"),
    .target(name: "CTestNames", path: "Tests/CTestNames"),
    .target(name: "ProjectDocuments", dependencies: [yams], path: "Tests/ProjectDocuments"),
    .testTarget(
        name: "BackendPollerTests",
        dependencies: [
            "BackendPoller", "BackendProtocol", "Backends", "Catalogues", "Environments", "Essentials", "HTTP", "Model",
            "NameBasedIDs", "Postgres", "Realms", "Sandbox", "TestSupport", "Work", logging,
        ], path: "Tests/BackendPollerTests"),
    .testTarget(
        name: "BackendsTests",
        dependencies: [
            "BackendContract", "BackendHTTP", "BackendProtocol", "Backends", "Catalogues", "Environments", "Essentials",
            "HTTP",
            "Model", "NameBasedIDs", "Runtime", "Sandbox", "TestSupport", "Work",
        ], path: "Tests/BackendsTests"),
    .testTarget(
        name: "CataloguesTests", dependencies: ["Backends", "Catalogues", "Essentials", "Model"],
        path: "Tests/CataloguesTests"),
    .testTarget(
        name: "DeliveriesTests", dependencies: ["Deliveries", "Essentials", crypto], path: "Tests/DeliveriesTests"),
    .testTarget(
        name: "CompassTests",
        dependencies: [
            "BackendContract", "BackendProtocol", "Compass", "CompassContract", "Essentials", "HTTP", "Sandbox",
            "TestSupport",
        ], path: "Tests/CompassTests"),
    .testTarget(
        name: "DefectNotifierTests",
        dependencies: [
            "BackendContract", "BackendProtocol", "Compass", "DefectNotifier", "Environments", "Essentials", "HTTP",
            "Model", "Postgres", "Realms", "Sandbox", "TestSupport", "Work", logging,
        ], path: "Tests/DefectNotifierTests"),
    .testTarget(
        name: "DefectSubmitterTests",
        dependencies: [
            "BackendProtocol", "Compass", "DefectSubmitter", "Environments", "Essentials", "HTTP", "Model", "Postgres",
            "Realms", "Sandbox", "TestSupport", "Work",
        ], path: "Tests/DefectSubmitterTests"),
    .testTarget(
        name: "DeviceClientTests", dependencies: ["DeviceClient", "Essentials", "Model", "TestSupport"],
        path: "Tests/DeviceClientTests"),
    .testTarget(
        name: "EntrySubmitterTests",
        dependencies: [
            "BackendProtocol", "Backends", "Catalogues", "EntrySubmitter", "Environments", "Essentials", "HTTP",
            "Model", "Postgres", "RealmGateway", "Realms", "Sandbox", "TestSupport", "Work",
        ], path: "Tests/EntrySubmitterTests"),
    .testTarget(
        name: "EnvironmentsTests", dependencies: ["BackendProtocol", "Environments", "Model"],
        path: "Tests/EnvironmentsTests"),
    .testTarget(
        name: "FieldpostTests",
        dependencies: [
            "BackendProtocol", "Backends", "Environments", "Essentials", "Fieldpost", "HTTP", "Identity",
            "ImportSources", "Kafka", "LocalCluster", "Model", "Moving", "Operations", "Postgres", "Realms", "Runtime",
            "Sandbox", "TestSupport", "Work", crypto, httpTypes, hummingbird, lifecycle, logging, nioPosix,
        ], path: "Tests/FieldpostTests"),
    .testTarget(
        name: "FlowTests",
        dependencies: [
            "BackendProtocol", "Backends", "DeviceClient", "Essentials", "HTTP", "LocalCluster", "Model", "Postgres",
            "Realms", "TestSupport",
        ], path: "Tests/FlowTests"),
    .testTarget(
        name: "HTTPTests", dependencies: ["CTestNames", "Essentials", "HTTP", "LocalCluster", "Model", "TestSupport"],
        path: "Tests/HTTPTests"),
    .testTarget(
        name: "InterleavingTests",
        dependencies: [
            "BackendPoller", "BackendProtocol", "Backends", "Catalogues", "EntrySubmitter", "Environments",
            "Essentials", "HTTP", "Kafka", "LocalCluster", "Model", "Postgres", "RealmGateway", "Realms",
            "TestSupport", "Work", logging,
        ], path: "Tests/InterleavingTests"),
    .testTarget(name: "KafkaTests", dependencies: ["CKafka", "Kafka", "TestSupport"], path: "Tests/KafkaTests"),
    .testTarget(
        name: "LagMonitorTests",
        dependencies: [
            "Environments", "Essentials", "HTTP", "Identity", "Kafka", "Lag", "LagMonitor", "LocalCluster", "Model",
            "Operations", "Postgres", "Realms", "Runtime", "Sandbox", "TestSupport", lifecycle, logging, nioPosix,
        ], path: "Tests/LagMonitorTests"),
    .testTarget(
        name: "LagTests", dependencies: ["Kafka", "Lag", "Runtime", "TestSupport", nio],
        path: "Tests/LagTests"),
    .testTarget(
        name: "LocationFanOutTests",
        dependencies: ["Essentials", "LocationFanOut", "Model", "Postgres", "Realms", "TestSupport", "Work"],
        path: "Tests/LocationFanOutTests"),
    .testTarget(
        name: "ModelTests", dependencies: ["Essentials", "Model", "ProjectDocuments", "TestSupport", yams],
        path: "Tests/ModelTests", exclude: ["Golden"]),
    .testTarget(
        name: "NoticeDelivererTests",
        dependencies: [
            "Deliveries", "Environments", "Essentials", "HTTP", "LocalCluster", "Model", "NoticeDeliverer", "Postgres",
            "Realms", "TestSupport", "Work", crypto, logging,
        ], path: "Tests/NoticeDelivererTests"),
    .testTarget(
        name: "OnboardingTests",
        dependencies: [
            "Environments", "Essentials", "HTTP", "Identity", "LocalCluster", "Model", "Onboarding", "Postgres",
            "ProjectDocuments", "Realms", "Runtime", "Sandbox", "TestSupport", crypto, jwtKit, lifecycle, logging, nio,
            nioPosix, yams,
        ], path: "Tests/OnboardingTests"),
    .testTarget(
        name: "PostgresTests", dependencies: ["Essentials", "LocalCluster", "Postgres", "TestSupport"],
        path: "Tests/PostgresTests"),
    .testTarget(
        name: "RealmGatewayTests",
        dependencies: [
            "ChangeRelay", "DeviceClient", "Environments", "Essentials", "HTTP", "Identity", "Kafka", "Model",
            "Postgres", "ProjectDocuments", "RealmGateway", "Realms", "Runtime", "Sandbox", "TestSupport", "Work",
            "Workbench", crypto, httpTypes, hummingbird, jwtKit, lifecycle, logging, nio, nioPosix, yams,
        ], path: "Tests/RealmGatewayTests"),
    .testTarget(
        name: "TaskFanOutTests",
        dependencies: ["Essentials", "Model", "Postgres", "Realms", "TaskFanOut", "TestSupport"],
        path: "Tests/TaskFanOutTests"),
    .testTarget(
        name: "RealmInitializerTests",
        dependencies: [
            "BackendProtocol", "Backends", "Catalogues", "Environments", "Essentials", "HTTP", "Model", "Postgres",
            "RealmInitializer", "Realms", "TestSupport", "Work", logging,
        ], path: "Tests/RealmInitializerTests"),
    .testTarget(
        name: "RealmsTests",
        dependencies: ["Essentials", "LocalCluster", "Model", "Postgres", "Realms", "TestSupport"],
        path: "Tests/RealmsTests"),
    .testTarget(
        name: "RuntimeTests",
        dependencies: [
            "Essentials", "HTTP", "Model", "Postgres", "Runtime", "TestSupport", hummingbird, hummingbirdCore,
            lifecycle, logging, metrics, nio, nioEmbedded, nioPosix,
        ], path: "Tests/RuntimeTests"),
    .testTarget(
        name: "ShareFanOutTests",
        dependencies: [
            "Environments", "Essentials", "Model", "Postgres", "Realms", "ShareFanOut", "TestSupport", "Work",
        ], path: "Tests/ShareFanOutTests"),
    .testTarget(
        name: "TidyTests",
        dependencies: [
            "Backends", "Environments", "LocalCluster", "Model", "Postgres", "ProjectDocuments", "Realms",
            "TestSupport", yams,
        ], path: "Tests/TidyTests"),
    .testTarget(
        name: "WorkTests",
        dependencies: [
            "ChangeRelay", "Essentials", "HTTP", "Kafka", "Model", "Postgres", "Realms", "TestSupport", "Work", logging,
        ], path: "Tests/WorkTests"),
    .testTarget(
        name: "WorkbenchTests",
        dependencies: [
            "BackendProtocol", "Backends", "Catalogues", "DataFiles", "DeviceClient", "EntrySubmitter", "Essentials",
            "LocalCluster", "Model", "Postgres", "RealmGateway", "TestSupport", "Workbench",
        ], path: "Tests/WorkbenchTests"),
]

let package = Package(
    name: "fieldpost",
    products: services.map { .executable(name: $0.executable, targets: [$0.target]) } + [
        .executable(name: "workbench", targets: ["Workbench"]),
        // For adapters outside this package.
        .library(name: "BackendProtocol", targets: ["BackendProtocol", "Essentials", "Model"]),
        .library(name: "BackendContract", targets: ["BackendContract"]),
        // For apps on devices.
        .library(name: "DeviceClient", targets: ["DeviceClient", "Essentials", "Model"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-algorithms", from: "1.2.1"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    ],
    targets: shared + tools + tests
        + services.map { service in
            .executableTarget(
                name: service.target, dependencies: service.dependencies, path: "Services/\(service.target)",
                resources: embedded[service.target])
        }
)

// `BUILD_TESTS=no` leaves out what only tests use (`deploy/up`); `BUILD_TESTS=ModelTests,KafkaTests` builds these test
// targets and no others.
if let wanted = Context.environment["BUILD_TESTS"]?.split(separator: ",").map(String.init) {
    let unwanted = Set(tests.map(\.name)).subtracting(wanted)
    package.targets.removeAll { unwanted.contains($0.name) && ($0.type == .test || wanted == ["no"]) }
    if wanted == ["no"] {
        package.dependencies.removeAll { dependency in
            guard case .sourceControl(_, let location, _) = dependency.kind else { return false }
            return location.hasSuffix("/Yams")
        }
    }
}

for target in package.targets where target.type != .system && !["CBroker", "CTestNames"].contains(target.name) {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .strictMemorySafety(),
        .treatAllWarnings(as: .error),
    ]
}
