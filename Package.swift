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
        [
            "Audit", "Essentials", "Kafka", "KeyedWorker", "Model", "ObjectStore", "Postgres", "ServiceRuntime",
            "ServiceSettings", "Tenants", logging, metrics,
        ]
    ),
    (
        "realm-gateway", "RealmGateway",
        [
            "Access", "Audit", "BackendConnections", "Essentials", "HTTPServer", "Identity", "Model", "ObjectStore",
            "Postgres", "Secrets", "ServiceRuntime", "ServiceSettings", "Tenants", crypto, httpTypes, hummingbird,
            lifecycle, logging, metrics, nio,
        ]
    ),
    (
        "onboarding", "Onboarding",
        [
            "Access", "Audit", "Essentials", "HTTPClient", "HTTPServer", "Identity", "Model", "ObjectStore", "Postgres",
            "Secrets", "ServiceRuntime", "ServiceSettings", "Tenants", crypto, httpTypes, hummingbird, lifecycle,
            logging, nio,
        ]
    ),
    (
        "realm-initializer", "RealmInitializer",
        [
            "Access", "BackendConnections", "BackendProtocol", "Backends", "Catalogues", "HTTPClient", "KeyedWorker",
            "Model", "ObjectStore", "Postgres", "Secrets", "ServiceRuntime", "ServiceSettings", logging,
        ]
    ),
    (
        "entry-submitter", "EntrySubmitter",
        [
            "BackendConnections", "BackendProtocol", "Backends", "Essentials", "HTTPClient", "KeyedWorker", "Model",
            "ObjectStore", "Postgres", "Secrets", "ServiceRuntime", "ServiceSettings", "Telemetry",
        ]
    ),
    (
        "backend-poller", "BackendPoller",
        [
            "BackendConnections", "BackendProtocol", "Backends", "Catalogues", "Essentials", "HTTPClient",
            "KeyedWorker", "Model", "ObjectStore", "Postgres", "Secrets", "ServiceRuntime", "ServiceSettings", logging,
            metrics,
        ]
    ),
    (
        "task-fan-out", "TaskFanOut",
        [
            "Access", "Essentials", "KeyedWorker", "Model", "ObjectStore", "Postgres", "ServiceRuntime",
            "ServiceSettings", logging,
        ]
    ),
    (
        "location-fan-out", "LocationFanOut",
        [
            "Access", "Essentials", "KeyedWorker", "Model", "ObjectStore", "Postgres", "ServiceRuntime",
            "ServiceSettings",
        ]
    ),
    (
        "share-fan-out", "ShareFanOut",
        [
            "Access", "Essentials", "KeyedWorker", "Model", "ObjectStore", "Postgres", "ServiceRuntime",
            "ServiceSettings",
        ]
    ),
    (
        "defect-notifier", "DefectNotifier",
        [
            "BackendConnections", "BackendProtocol", "Compass", "Essentials", "HTTPClient", "KeyedWorker", "Model",
            "ObjectStore", "Postgres", "Secrets", "ServiceRuntime", "ServiceSettings", logging, metrics,
        ]
    ),
    (
        "notice-deliverer", "NoticeDeliverer",
        [
            "BackendHTTP", "Deliveries", "Essentials", "HTTPClient", "KeyedWorker", "Model", "ObjectStore", "Postgres",
            "Secrets", "ServiceRuntime", "ServiceSettings", "Tenants", crypto, logging, metrics,
        ]
    ),
    (
        "defect-submitter", "DefectSubmitter",
        [
            "BackendConnections", "BackendProtocol", "Compass", "Essentials", "HTTPClient", "KeyedWorker", "Model",
            "ObjectStore", "Postgres", "Secrets", "ServiceRuntime", "ServiceSettings",
        ]
    ),
    (
        "lag-monitor", "LagMonitor",
        [
            "Access", "AdminQueries", "Audit", "Essentials", "HTTPClient", "HTTPServer", "Identity", "Kafka",
            "KeyedWorker", "LagMonitoring", "Model", "ObjectStore", "Postgres", "ServiceRuntime", "ServiceSettings",
            "Telemetry", "Tenants", crypto, httpTypes, hummingbird, lifecycle, logging, metrics, nio,
        ]
    ),
    (
        "fieldpost", "Fieldpost",
        [
            "Access", "AdminQueries", "Audit", "BackendConnections", "BackendProtocol", "Backends", "Catalogues",
            "CommandLineSupport", "Compass", "Deliveries", "Essentials", "HTTPClient", "Identity", "Kafka",
            "KeyedWorker", "KindSchema", "LagMonitoring", "Model", "ObjectStore", "Postgres", "Secrets",
            "ServiceSettings", "TenantMigration", "Tenants", algorithms, argumentParser, crypto, yams,
        ]
    ),
]

/// The executables that call adapters of back ends. Each is a library with the entry point in `Main`, so that an
/// executable of another package can run it with further adapters.
let withAdapters: Set = ["BackendPoller", "EntrySubmitter", "Fieldpost", "RealmInitializer"]

/// Files that are part of an executable: it is one file, and reads none of them.
let embedded: [String: [Resource]] = [
    "LagMonitor": ["console.css", "console.js", "icon.svg", "index.html", "views.js"].map {
        .embedInCode("Console/Page/\($0)")
    },
    "Onboarding": ["page.css", "page.html", "page.js"].map { .embedInCode("Page/\($0)") },
]

/// Folders in an executable's folder that are not part of it. `onboarding` reads the app's files at start.
let excluded = ["Onboarding": ["App"]]

/// The layers of `Shared`, from the lowest to the highest. A module imports modules of its own and of lower layers.
let shared: [Target] = [
    // Foundation
    .target(name: "Essentials", dependencies: [crypto], path: "Shared/Foundation/Essentials"),
    .target(name: "KindSchema", dependencies: ["Essentials"], path: "Shared/Foundation/KindSchema"),

    // Model
    .target(name: "Model", dependencies: ["Essentials", "KindSchema"], path: "Shared/Model"),

    // Clients
    .systemLibrary(name: "CCurl", path: "Shared/Clients/CLibraries/CCurl", pkgConfig: "libcurl"),
    .systemLibrary(name: "CKafka", path: "Shared/Clients/CLibraries/CKafka", pkgConfig: "rdkafka"),
    .systemLibrary(name: "CPostgres", path: "Shared/Clients/CLibraries/CPostgres", pkgConfig: "libpq"),
    .systemLibrary(name: "CZlib", path: "Shared/Clients/CLibraries/CZlib", pkgConfig: "zlib"),
    .target(name: "Postgres", dependencies: ["CPostgres", "Essentials", deque], path: "Shared/Clients/Postgres"),
    .target(name: "Kafka", dependencies: ["CKafka", "Essentials", deque], path: "Shared/Clients/Kafka"),
    .target(name: "HTTPClient", dependencies: ["CCurl", "Essentials"], path: "Shared/Clients/HTTPClient"),

    // Connectors
    .target(name: "BackendProtocol", dependencies: ["Essentials", "Model"], path: "Shared/Connectors/BackendProtocol"),
    .target(
        name: "BackendContract", dependencies: ["BackendProtocol", "Essentials", "Model"],
        path: "Shared/Connectors/BackendContract"),
    .target(
        name: "BackendHTTP", dependencies: ["BackendProtocol", "Essentials", "HTTPClient"],
        path: "Shared/Connectors/BackendHTTP"),
    .target(
        name: "Backends", dependencies: ["BackendHTTP", "BackendProtocol", "Essentials", "HTTPClient", "Model"],
        path: "Shared/Connectors/Backends"),
    .target(
        name: "Compass", dependencies: ["BackendHTTP", "BackendProtocol", "Essentials", "HTTPClient"],
        path: "Shared/Connectors/Compass"),
    .target(
        name: "Deliveries", dependencies: ["Essentials", crypto, cryptoExtras], path: "Shared/Connectors/Deliveries"),

    // Platform
    .target(name: "ServiceSettings", dependencies: ["Essentials"], path: "Shared/Platform/ServiceSettings"),
    .target(
        name: "Telemetry",
        dependencies: [
            "Essentials", "HTTPClient", "ServiceSettings", httpTypes, hummingbird, lifecycle, logging, metrics, nio,
        ], path: "Shared/Platform/Telemetry"),
    .target(
        name: "HTTPServer",
        dependencies: [
            "CZlib", "Essentials", "ServiceSettings", "Telemetry", httpTypes, hummingbird, hummingbirdCore,
            lifecycle, logging, metrics, nio, nioHTTP1, nioHTTPTypes, nioHTTPTypesHTTP1, nioPosix,
            nioSSL, nioWebSocket,
        ], path: "Shared/Platform/HTTPServer"),
    .target(
        name: "ServiceRuntime",
        dependencies: [
            "Essentials", "HTTPServer", "ServiceSettings", "Telemetry", httpTypes, hummingbird, lifecycle, logging,
            metrics, nio, nioPosix, signals,
        ], path: "Shared/Platform/ServiceRuntime"),

    // Store
    .target(
        name: "ObjectStore", dependencies: ["Essentials", "KindSchema", "Model", "Postgres", "Telemetry"],
        path: "Shared/Store/ObjectStore"),
    .target(name: "Secrets", dependencies: ["Model", "ObjectStore", "Postgres", crypto], path: "Shared/Store/Secrets"),
    .target(name: "Audit", dependencies: ["Model", "Postgres"], path: "Shared/Store/Audit"),
    .target(
        name: "Tenants", dependencies: ["BackendProtocol", "Model", "ObjectStore", "Postgres"],
        path: "Shared/Store/Tenants"),
    .target(
        name: "Access",
        dependencies: ["Audit", "Essentials", "KindSchema", "Model", "ObjectStore", "Postgres", "Tenants"],
        path: "Shared/Store/Access"),
    .target(
        name: "Catalogues",
        dependencies: [
            "Access", "BackendProtocol", "Essentials", "Model", "ObjectStore", "Postgres", crypto, logging, metrics,
        ], path: "Shared/Store/Catalogues"),
    .target(
        name: "Identity",
        dependencies: ["Essentials", "HTTPClient", "HTTPServer", "Model", "Tenants", crypto, httpTypes, jwtKit],
        path: "Shared/Store/Identity"),
    .target(
        name: "BackendConnections",
        dependencies: [
            "Access", "BackendProtocol", "Backends", "Compass", "Essentials", "HTTPClient", "Model", "ObjectStore",
            "Postgres", "Secrets",
        ], path: "Shared/Store/BackendConnections"),

    // Worker
    .target(
        name: "KeyedWorker",
        dependencies: [
            "Essentials", "Kafka", "Model", "ObjectStore", "Postgres", "ServiceRuntime", "ServiceSettings", logging,
            metrics,
        ], path: "Shared/Worker/KeyedWorker"),
    .target(
        name: "LagMonitoring", dependencies: ["Essentials", "Kafka", "Model", "Telemetry"],
        path: "Shared/Worker/LagMonitoring"),
    .target(
        name: "Integration",
        dependencies: ["Essentials", "HTTPClient", "Kafka", "Model", "ServiceSettings", logging, signals],
        path: "Shared/Worker/Integration"),

    // Administration
    .target(
        name: "AdminQueries",
        dependencies: ["Audit", "BackendProtocol", "Essentials", "Model", "ObjectStore", "Postgres"],
        path: "Shared/Admin/AdminQueries"),
    .target(
        name: "TenantMigration",
        dependencies: ["Essentials", "Model", "ObjectStore", "Postgres", "Secrets", "Tenants", crypto],
        path: "Shared/Admin/TenantMigration"),
    .target(name: "CommandLineSupport", dependencies: [argumentParser], path: "Shared/Admin/CommandLineSupport"),

    // Devices
    .target(name: "DeviceClient", dependencies: ["Essentials", "Model"], path: "Shared/Device/DeviceClient"),
]

/// Modules that do not ship, and that no shipped module imports.
let tools: [Target] = [
    .target(name: "CBroker", path: "Tools/CBroker"),
    .target(name: "DataFiles", path: "Tools/DataFiles"),
    .target(
        name: "LocalCluster", dependencies: ["Essentials", "HTTPClient", "Model", "Postgres"],
        path: "Tools/LocalCluster"),
    .target(name: "PowerSyncModel", path: "Tools/PowerSyncModel"),
    .executableTarget(
        name: "Sandbox",
        dependencies: [
            "CBroker", "CKafka", "CommandLineSupport", "DataFiles", "Essentials", "HTTPServer", "Model",
            "ServiceRuntime", "Telemetry", argumentParser, crypto, cryptoExtras, httpTypes, hummingbird, jwtKit,
            lifecycle, logging, nio, nioHTTPTypes, nioPosix, signals,
        ], path: "Tools/Sandbox"),
    .executableTarget(
        name: "Workbench",
        dependencies: [
            "Access", "BackendConnections", "BackendProtocol", "Backends", "Catalogues", "CommandLineSupport",
            "DataFiles", "Deliveries", "DeviceClient", "Essentials", "HTTPClient", "Kafka", "KeyedWorker", "KindSchema",
            "LocalCluster", "Model", "ObjectStore", "Postgres", "PowerSyncModel", "Secrets", "ServiceSettings",
            "TenantMigration", "Tenants",
            algorithms, argumentParser, signals,
        ], path: "Tools/Workbench"),
]

let tests: [Target] = [
    .target(
        name: "TestSupport",
        dependencies: [
            "BackendContract", "CKafka", "Essentials", "HTTPClient", "Kafka", "KeyedWorker", "KindSchema",
            "LocalCluster", "Model", "ObjectStore", "Postgres", "ProjectDocuments", logging, yams,
        ], path: "Tests/TestSupport"),
    .target(name: "CTestNames", path: "Tests/CTestNames"),
    // The example is also a package of its own. Here its build compiles no service a second time.
    .target(name: "Acme", dependencies: ["BackendProtocol"], path: "examples/acme-adapter/Sources/Acme"),
    .executableTarget(
        name: "AcmeServices", dependencies: ["Acme", "Backends"] + withAdapters.sorted().map { .byName(name: $0) },
        path: "examples/acme-adapter/Sources/AcmeServices"),
    .testTarget(
        name: "AcmeTests", dependencies: ["Acme", "BackendContract", "BackendProtocol", "Essentials", "Model"],
        path: "examples/acme-adapter/Tests/AcmeTests"),
    .systemLibrary(name: "CPDF", path: "examples/inspections/swift/Sources/CPDF", pkgConfig: "libpng"),
    .executableTarget(
        name: "InspectionWorker",
        dependencies: ["CPDF", "DeviceClient", "Essentials", "Integration", "Model", logging],
        path: "examples/inspections/swift/Sources/InspectionWorker"),
    .target(name: "ProjectDocuments", dependencies: [yams], path: "Tests/ProjectDocuments"),
    .testTarget(
        name: "BackendPollerTests",
        dependencies: [
            "BackendConnections", "BackendPoller", "BackendProtocol", "Backends", "Catalogues", "Essentials",
            "HTTPClient", "KeyedWorker", "Model", "ObjectStore", "Postgres", "Sandbox", "Secrets", "TestSupport",
            logging,
        ], path: "Tests/BackendPollerTests"),
    .testTarget(
        name: "BackendsTests",
        dependencies: [
            "BackendContract", "BackendHTTP", "BackendProtocol", "Backends", "Catalogues", "Essentials", "HTTPClient",
            "HTTPServer", "KeyedWorker", "Model", "Sandbox", "TestSupport",
        ], path: "Tests/BackendsTests"),
    .testTarget(
        name: "CataloguesTests", dependencies: ["Backends", "Catalogues", "Essentials", "Model"],
        path: "Tests/CataloguesTests"),
    .testTarget(
        name: "DeliveriesTests", dependencies: ["Deliveries", "Essentials", crypto, cryptoExtras],
        path: "Tests/DeliveriesTests"),
    .testTarget(
        name: "CompassTests",
        dependencies: [
            "BackendContract", "BackendProtocol", "Compass", "Essentials", "HTTPClient", "Sandbox", "TestSupport",
        ], path: "Tests/CompassTests"),
    .testTarget(
        name: "DefectNotifierTests",
        dependencies: [
            "BackendConnections", "BackendContract", "BackendProtocol", "Compass", "DefectNotifier", "Essentials",
            "HTTPClient", "KeyedWorker", "Model", "ObjectStore", "Postgres", "Sandbox", "Secrets", "TestSupport",
            logging,
        ], path: "Tests/DefectNotifierTests"),
    .testTarget(
        name: "DefectSubmitterTests",
        dependencies: [
            "BackendConnections", "BackendProtocol", "Compass", "DefectSubmitter", "Essentials", "HTTPClient",
            "KeyedWorker", "Model", "ObjectStore", "Postgres", "Sandbox", "Secrets", "TestSupport",
        ], path: "Tests/DefectSubmitterTests"),
    .testTarget(
        name: "KindSchemaTests", dependencies: ["Essentials", "KindSchema", "ProjectDocuments", "TestSupport"],
        path: "Tests/KindSchemaTests", exclude: ["fuzz.py", "vectors.json"]),
    .testTarget(
        name: "DeviceClientTests", dependencies: ["DeviceClient", "Essentials", "Model", "TestSupport"],
        path: "Tests/DeviceClientTests"),
    .testTarget(
        name: "EntrySubmitterTests",
        dependencies: [
            "BackendConnections", "BackendProtocol", "Backends", "Catalogues", "DeviceClient", "EntrySubmitter",
            "Essentials", "HTTPClient", "KeyedWorker", "Model", "ObjectStore", "Postgres", "RealmGateway", "Sandbox",
            "Secrets", "TestSupport",
        ], path: "Tests/EntrySubmitterTests"),
    .testTarget(
        name: "BackendConnectionsTests",
        dependencies: ["Access", "BackendConnections", "BackendProtocol", "Model", "Secrets", "Tenants"],
        path: "Tests/BackendConnectionsTests"),
    .testTarget(
        name: "FieldpostTests",
        dependencies: [
            "Access", "AdminQueries", "Audit", "BackendConnections", "BackendProtocol", "Backends", "DataFiles",
            "DeviceClient", "Essentials", "Fieldpost", "HTTPClient", "HTTPServer", "Identity", "Kafka", "KeyedWorker",
            "KindSchema", "LagMonitoring", "LocalCluster", "Model", "ObjectStore", "Postgres", "Sandbox", "Secrets",
            "ServiceRuntime", "ServiceSettings", "Telemetry", "TenantMigration", "Tenants", "TestSupport", "Workbench",
            crypto, cryptoExtras, httpTypes, hummingbird, lifecycle, logging, nioPosix,
        ], path: "Tests/FieldpostTests", exclude: ["Types/Kinds.kt", "Types/kinds.ts", "Types/kinds.yaml"]),
    .testTarget(
        name: "FlowTests",
        dependencies: [
            "BackendProtocol", "Backends", "DeviceClient", "Essentials", "HTTPClient", "Kafka", "LocalCluster", "Model",
            "ObjectStore", "Postgres", "TestSupport",
        ], path: "Tests/FlowTests", exclude: ["Recording"]),
    .testTarget(
        name: "HTTPClientTests",
        dependencies: ["CTestNames", "Essentials", "HTTPClient", "LocalCluster", "Model", "TestSupport"],
        path: "Tests/HTTPClientTests"),
    .testTarget(
        name: "IntegrationTests",
        dependencies: ["Essentials", "InspectionWorker", "Integration", "Kafka", "Model", "TestSupport", logging],
        path: "Tests/IntegrationTests"),
    .testTarget(
        name: "InterleavingTests",
        dependencies: [
            "BackendConnections", "BackendPoller", "BackendProtocol", "Backends", "Catalogues", "EntrySubmitter",
            "Essentials", "HTTPClient", "Kafka", "KeyedWorker", "LocalCluster", "Model", "ObjectStore", "Postgres",
            "RealmGateway", "Secrets", "TestSupport", logging,
        ], path: "Tests/InterleavingTests"),
    .testTarget(
        name: "KafkaTests",
        dependencies: [
            "CKafka", "Essentials", "Kafka", "LocalCluster", "Sandbox", "TestSupport", nio, nioEmbedded,
        ], path: "Tests/KafkaTests"),
    .testTarget(
        name: "LagMonitorTests",
        dependencies: [
            "AdminQueries", "Audit", "Essentials", "HTTPClient", "HTTPServer", "Identity", "Kafka", "LagMonitor",
            "LagMonitoring", "LocalCluster", "Model", "ObjectStore", "Postgres", "Sandbox", "ServiceRuntime",
            "ServiceSettings", "Telemetry", "Tenants", "TestSupport", lifecycle, logging, nioPosix,
        ], path: "Tests/LagMonitorTests"),
    .testTarget(
        name: "LagMonitoringTests",
        dependencies: ["Essentials", "Kafka", "LagMonitoring", "Telemetry", "TestSupport", nio],
        path: "Tests/LagMonitoringTests"),
    .testTarget(
        name: "LocationFanOutTests",
        dependencies: [
            "Essentials", "KeyedWorker", "LocationFanOut", "Model", "ObjectStore", "Postgres", "TestSupport",
        ], path: "Tests/LocationFanOutTests"),
    .testTarget(
        name: "ModelTests", dependencies: ["Essentials", "Model", "ProjectDocuments", "TestSupport", yams],
        path: "Tests/ModelTests", exclude: ["Golden"]),
    .testTarget(
        name: "NoticeDelivererTests",
        dependencies: [
            "Deliveries", "Essentials", "HTTPClient", "KeyedWorker", "LocalCluster", "Model", "NoticeDeliverer",
            "ObjectStore", "Postgres", "Secrets", "Tenants", "TestSupport", crypto, logging,
        ], path: "Tests/NoticeDelivererTests"),
    .testTarget(
        name: "OnboardingTests",
        dependencies: [
            "Access", "Essentials", "HTTPClient", "HTTPServer", "Identity", "LocalCluster", "Model", "ObjectStore",
            "Onboarding", "Postgres", "ProjectDocuments", "Sandbox", "Secrets", "ServiceRuntime", "ServiceSettings",
            "Telemetry", "Tenants", "TestSupport", crypto, jwtKit, lifecycle, logging, nio, nioPosix, yams,
        ], path: "Tests/OnboardingTests"),
    .testTarget(
        name: "PostgresTests", dependencies: ["Essentials", "LocalCluster", "Postgres", "TestSupport"],
        path: "Tests/PostgresTests"),
    .testTarget(
        name: "RealmGatewayTests",
        dependencies: [
            "Access", "Audit", "BackendConnections", "ChangeRelay", "DeviceClient", "Essentials", "HTTPClient",
            "HTTPServer", "Identity", "Integration", "Kafka", "KeyedWorker", "LocalCluster", "KindSchema", "Model",
            "ObjectStore", "Postgres", "PowerSyncModel", "ProjectDocuments", "RealmGateway", "Sandbox", "Secrets",
            "ServiceRuntime", "ServiceSettings", "Telemetry", "Tenants", "TestSupport", "Workbench", crypto, httpTypes,
            hummingbird, jwtKit, lifecycle, logging, nio, nioPosix, yams,
        ], path: "Tests/RealmGatewayTests", exclude: ["PowerSyncTranscripts"]),
    .testTarget(
        name: "TaskFanOutTests",
        dependencies: [
            "Essentials", "KeyedWorker", "Model", "ObjectStore", "Postgres", "TaskFanOut", "TestSupport",
        ],
        path: "Tests/TaskFanOutTests"),
    .testTarget(
        name: "RealmInitializerTests",
        dependencies: [
            "BackendConnections", "BackendProtocol", "Backends", "Catalogues", "Essentials", "HTTPClient",
            "KeyedWorker", "Model", "ObjectStore", "Postgres", "RealmInitializer", "Secrets", "TestSupport", logging,
        ], path: "Tests/RealmInitializerTests"),
    .testTarget(
        name: "ObjectStoreTests",
        dependencies: ["Essentials", "LocalCluster", "Model", "ObjectStore", "Postgres", "Telemetry", "TestSupport"],
        path: "Tests/ObjectStoreTests"),
    .testTarget(
        name: "PlatformTests",
        dependencies: [
            "Essentials", "HTTPClient", "HTTPServer", "LocalCluster", "Model", "Postgres", "ServiceRuntime",
            "ServiceSettings", "Telemetry", "TestSupport", httpTypes, hummingbird, hummingbirdCore, lifecycle, logging,
            metrics,
            nio, nioEmbedded, nioPosix,
        ], path: "Tests/PlatformTests"),
    // Samples of the DocC catalogues, compiled as in an app's package: only public declarations.
    .testTarget(
        name: "SampleTests", dependencies: ["DeviceClient", "Essentials", "Integration", "Model"],
        path: "Tests/SampleTests", packageAccess: false),
    .testTarget(
        name: "ShareFanOutTests",
        dependencies: ["Essentials", "KeyedWorker", "Model", "ObjectStore", "Postgres", "ShareFanOut", "TestSupport"],
        path: "Tests/ShareFanOutTests"),
    .testTarget(
        name: "TidyTests",
        dependencies: [
            "Backends", "LocalCluster", "Model", "ObjectStore", "Postgres", "ProjectDocuments", "Tenants",
            "TestSupport", yams,
        ], path: "Tests/TidyTests"),
    .testTarget(
        name: "KeyedWorkerTests",
        dependencies: [
            "ChangeRelay", "Essentials", "HTTPClient", "Kafka", "KeyedWorker", "KindSchema", "Model", "ObjectStore",
            "Postgres", "ServiceSettings", "TestSupport", logging,
        ], path: "Tests/KeyedWorkerTests"),
    .testTarget(
        name: "WorkbenchTests",
        dependencies: [
            "BackendProtocol", "Backends", "Catalogues", "DataFiles", "DeviceClient", "EntrySubmitter", "Essentials",
            "KindSchema", "LocalCluster", "Model", "Postgres", "RealmGateway", "TestSupport", "Workbench",
        ], path: "Tests/WorkbenchTests"),
]

let package = Package(
    name: "fieldpost",
    products: services.map {
        .executable(name: $0.executable, targets: [withAdapters.contains($0.target) ? $0.target + "Main" : $0.target])
    } + [
        .executable(name: "sandbox", targets: ["Sandbox"]),
        .executable(name: "workbench", targets: ["Workbench"]),
        // For adapters outside this package.
        .library(name: "BackendProtocol", targets: ["BackendProtocol", "Essentials", "Model"]),
        .library(name: "BackendContract", targets: ["BackendContract"]),
        // For executables with adapters outside this package.
        .library(name: "BackendServices", targets: withAdapters.sorted() + ["Backends"]),
        // For apps on devices.
        .library(name: "DeviceClient", targets: ["DeviceClient", "Essentials", "Model"]),
        // For programs that serve an environment as an integration.
        .library(name: "Integration", targets: ["Integration", "Essentials", "Model"]),
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
        + services.flatMap { service -> [Target] in
            let path = "Services/\(service.target)"
            guard withAdapters.contains(service.target) else {
                return [
                    .executableTarget(
                        name: service.target, dependencies: service.dependencies, path: path,
                        exclude: excluded[service.target] ?? [], resources: embedded[service.target])
                ]
            }
            return [
                .target(name: service.target, dependencies: service.dependencies, path: path, exclude: ["Main"]),
                .executableTarget(
                    name: service.target + "Main", dependencies: [.byName(name: service.target)], path: path + "/Main"),
            ]
        }
)

// `BUILD_TESTS=no` leaves out the tests (`deploy/up`); `BUILD_TESTS=ModelTests,KafkaTests` builds these test
// targets and no others.
if let wanted = Context.environment["BUILD_TESTS"]?.split(separator: ",").map(String.init) {
    let unwanted = Set(tests.map(\.name)).subtracting(wanted)
    package.targets.removeAll { unwanted.contains($0.name) && ($0.type == .test || wanted == ["no"]) }
}

for target in package.targets where target.type != .system && !["CBroker", "CTestNames"].contains(target.name) {
    // The example compiles with the settings of its own package.
    if target.path?.hasPrefix("examples/") == true { continue }
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .strictMemorySafety(),
        .treatAllWarnings(as: .error),
    ]
}
