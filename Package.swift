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
    ("change-relay", "ChangeRelay", ["Kafka", "Model", "Pipeline", "Postgres", "Realms", "Runtime"]),
    (
        "realm-gateway", "RealmGateway",
        [
            "HTTP", "Identity", "Model", "Postgres", "Realms", "Runtime", crypto, httpTypes, hummingbird, lifecycle,
            logging, nio,
        ]
    ),
    (
        "onboarding", "Onboarding",
        [
            "HTTP", "Identity", "Model", "Postgres", "Realms", "Runtime", "Secrets", crypto, httpTypes, hummingbird,
            lifecycle, logging, nio,
        ]
    ),
    (
        "realm-initializer", "RealmInitializer",
        ["Audiences", "Backends", "HTTP", "Kafka", "Model", "Pipeline", "Postgres", "Realms", "Runtime", "Secrets"]
    ),
    (
        "entry-submitter", "EntrySubmitter",
        ["Backends", "HTTP", "Kafka", "Model", "Pipeline", "Postgres", "Realms", "Runtime", "Secrets"]
    ),
    (
        "backend-poller", "BackendPoller",
        [
            "Audiences", "Backends", "HTTP", "Kafka", "Model", "Pipeline", "Postgres", "Realms", "Runtime", "Secrets",
            logging, metrics,
        ]
    ),
    (
        "fieldpost", "Fieldpost",
        [
            "Audiences", "Backends", "Commands", "HTTP", "Identity", "Kafka", "Model", "Pipeline", "Postgres", "Realms",
            "Runtime", "Secrets", "Seeded", "Suite", algorithms, argumentParser, crypto, logging, nio, nioPosix,
        ]
    ),
    (
        "sandbox", "Sandbox",
        [
            "CBroker", "CKafka", "Commands", "Model", "Runtime", "Seeded", argumentParser, crypto, cryptoExtras,
            httpTypes, hummingbird, jwtKit, logging, nio, nioHTTPTypes,
        ]
    ),
]

/// Who may import whom. Arrows point down, and services do not import each other.
let shared: [Target] = [
    .systemLibrary(name: "CCurl", path: "Shared/CLibraries/CCurl", pkgConfig: "libcurl"),
    .systemLibrary(name: "CKafka", path: "Shared/CLibraries/CKafka", pkgConfig: "rdkafka"),
    .systemLibrary(name: "CPostgres", path: "Shared/CLibraries/CPostgres", pkgConfig: "libpq"),
    .target(name: "CBroker", path: "Shared/CLibraries/CBroker"),
    .target(name: "Model", path: "Shared/Model"),
    .target(name: "Seeded", path: "Shared/Seeded"),
    .target(name: "Postgres", dependencies: ["CPostgres", deque], path: "Shared/Postgres"),
    .target(name: "Kafka", dependencies: ["CKafka", deque], path: "Shared/Kafka"),
    .target(name: "HTTP", dependencies: ["CCurl"], path: "Shared/HTTP"),
    .target(name: "Realms", dependencies: ["Model", "Postgres"], path: "Shared/Realms"),
    .target(
        name: "Pipeline", dependencies: ["Kafka", "Model", "Postgres", "Realms", "Runtime", logging, metrics],
        path: "Shared/Pipeline"),
    .target(name: "Secrets", dependencies: [crypto], path: "Shared/Secrets"),
    .target(name: "BackendProtocol", dependencies: ["Model"], path: "Shared/BackendProtocol"),
    .target(name: "BackendContract", dependencies: ["BackendProtocol", "Model"], path: "Shared/BackendContract"),
    .target(
        name: "Backends", dependencies: ["BackendProtocol", "HTTP", "Model", "Postgres", "Secrets", crypto],
        path: "Shared/Backends"),
    .target(
        name: "Audiences", dependencies: ["Backends", "Model", "Postgres", "Realms", crypto, logging],
        path: "Shared/Audiences"),
    .target(
        name: "Identity",
        dependencies: [
            "Backends", "HTTP", "Model", "Postgres", "Realms", "Runtime", crypto, httpTypes, jwtKit, lifecycle, logging,
        ],
        path: "Shared/Identity"),
    .target(name: "Suite", dependencies: ["HTTP", "Postgres"], path: "Shared/Suite"),
    .target(name: "Commands", dependencies: [argumentParser], path: "Shared/Commands"),
    .target(
        name: "Runtime",
        dependencies: [
            hummingbird, hummingbirdCore, hummingbirdTLS, httpTypes, lifecycle, logging, metrics, nio, nioHTTP1,
            nioHTTPTypes, nioHTTPTypesHTTP1, nioPosix, nioSSL, nioWebSocket, signals,
        ],
        path: "Shared/Runtime"),
]

let tests: [Target] = [
    .target(
        name: "TestSupport", dependencies: ["CBroker", "CKafka", "Kafka", "Model", "Postgres", "Realms", "Suite"],
        path: "Tests/TestSupport"),
    .target(name: "PermissionTable", dependencies: ["Model"], path: "Tests/PermissionTable"),
    .target(name: "ProjectDocuments", dependencies: [yams], path: "Tests/ProjectDocuments"),
    .testTarget(
        name: "ModelTests", dependencies: ["Model", "PermissionTable", "ProjectDocuments", "Seeded", yams],
        path: "Tests/ModelTests"),
    .testTarget(
        name: "PostgresTests", dependencies: ["Postgres", "Suite", "TestSupport"], path: "Tests/PostgresTests"),
    .testTarget(
        name: "PipelineTests",
        dependencies: ["Kafka", "Model", "Pipeline", "Postgres", "Realms", "TestSupport", logging],
        path: "Tests/PipelineTests"),
    .testTarget(name: "KafkaTests", dependencies: ["CKafka", "Kafka", "TestSupport"], path: "Tests/KafkaTests"),
    .testTarget(name: "HTTPTests", dependencies: ["HTTP", "TestSupport"], path: "Tests/HTTPTests"),
    .testTarget(
        name: "RealmGatewayTests",
        dependencies: [
            "HTTP", "Identity", "Kafka", "Model", "PermissionTable", "Pipeline", "Postgres", "ProjectDocuments",
            "RealmGateway", "Realms", "Runtime", "Sandbox", "Seeded", "TestSupport", crypto, httpTypes, jwtKit,
            lifecycle, logging, nio, nioPosix, yams,
        ],
        path: "Tests/RealmGatewayTests"),
    .testTarget(
        name: "OnboardingTests",
        dependencies: [
            "HTTP", "Identity", "Model", "Onboarding", "Postgres", "ProjectDocuments", "Realms", "Runtime", "Sandbox",
            "Secrets", "Suite", "TestSupport", crypto, httpTypes, hummingbird, jwtKit, lifecycle, logging, nio,
            nioPosix, nioWebSocket, yams,
        ],
        path: "Tests/OnboardingTests"),
    .testTarget(
        name: "BackendsTests",
        dependencies: ["BackendContract", "Backends", "HTTP", "Model", "Sandbox", "Seeded", "TestSupport"],
        path: "Tests/BackendsTests"),
    .testTarget(
        name: "FieldpostTests",
        dependencies: [
            "Backends", "Fieldpost", "Identity", "Kafka", "Model", "Postgres", "Realms", "Runtime", "Sandbox",
            "Secrets", "Seeded", "Suite", "TestSupport", httpTypes, hummingbird, lifecycle, logging, nioPosix,
        ],
        path: "Tests/FieldpostTests"),
    .testTarget(
        name: "RuntimeTests",
        dependencies: [
            "ChangeRelay", "HTTP", "Postgres", "Runtime", "TestSupport", hummingbird, lifecycle, logging, metrics,
            nio, nioEmbedded, nioPosix,
        ],
        path: "Tests/RuntimeTests"),
    .testTarget(
        name: "EntrySubmitterTests",
        dependencies: [
            "Backends", "EntrySubmitter", "HTTP", "Model", "Pipeline", "Postgres", "Realms", "Sandbox", "Secrets",
            "Seeded", "TestSupport",
        ],
        path: "Tests/EntrySubmitterTests"),
    .testTarget(
        name: "AudiencesTests", dependencies: ["Audiences", "Backends", "Model"], path: "Tests/AudiencesTests"),
    .testTarget(
        name: "BackendPollerTests",
        dependencies: [
            "Audiences", "BackendPoller", "Backends", "HTTP", "Model", "Pipeline", "Postgres", "Realms", "Sandbox",
            "Secrets",
            "Seeded", "TestSupport", logging,
        ],
        path: "Tests/BackendPollerTests"),
    .testTarget(name: "SecretsTests", dependencies: ["Secrets"], path: "Tests/SecretsTests"),
    .testTarget(
        name: "RealmInitializerTests",
        dependencies: [
            "Audiences", "Backends", "HTTP", "Model", "Pipeline", "Postgres", "RealmInitializer", "Realms", "Secrets",
            "TestSupport",
        ],
        path: "Tests/RealmInitializerTests"),
    .testTarget(
        name: "RealmsTests", dependencies: ["Model", "Postgres", "Realms", "Suite", "TestSupport"],
        path: "Tests/RealmsTests"),
    .testTarget(
        name: "FlowTests",
        dependencies: ["Backends", "HTTP", "Kafka", "Model", "Postgres", "Realms", "Seeded", "Suite"],
        path: "Tests/FlowTests"),
    .testTarget(
        name: "InterleavingTests",
        dependencies: [
            "BackendPoller", "Audiences", "Backends", "EntrySubmitter", "HTTP", "Model", "Pipeline", "Postgres",
            "Realms", "Secrets",
            "Seeded", "Suite", "TestSupport", logging,
        ],
        path: "Tests/InterleavingTests"),
    .testTarget(
        name: "TidyTests", dependencies: ["Model", "ProjectDocuments", "Realms", "TestSupport", yams],
        path: "Tests/TidyTests"),
]

let package = Package(
    name: "fieldpost",
    products: services.map { .executable(name: $0.executable, targets: [$0.target]) } + [
        // For adapters outside this package.
        .library(name: "BackendProtocol", targets: ["BackendProtocol", "Model"]),
        .library(name: "BackendContract", targets: ["BackendContract"]),
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
    targets: shared + tests
        + services.map { service in
            .executableTarget(
                name: service.target, dependencies: service.dependencies, path: "Services/\(service.target)")
        }
)

// What only tests use is not built for those who run the suite (`deploy/up`).
if Context.environment["BUILD_TESTS"] == "no" {
    let names = Set(tests.map(\.name))
    package.targets.removeAll { names.contains($0.name) }
}

for target in package.targets where target.type != .system && target.name != "CBroker" {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .strictMemorySafety(),
        .treatAllWarnings(as: .error),
    ]
}
