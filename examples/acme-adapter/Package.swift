// swift-tools-version:6.2
import PackageDescription

let package = Package(
    name: "acme",
    // In a repository of its own: `.package(url: …, exact: …)`, the release that is installed.
    dependencies: [.package(name: "fieldpost", path: "../..")],
    targets: [
        .target(name: "Acme", dependencies: [.product(name: "BackendProtocol", package: "fieldpost")]),
        .executableTarget(
            name: "AcmeServices", dependencies: ["Acme", .product(name: "BackendServices", package: "fieldpost")]),
        .testTarget(
            name: "AcmeTests", dependencies: ["Acme", .product(name: "BackendContract", package: "fieldpost")]),
    ])
