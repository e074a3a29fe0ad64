// swift-tools-version:6.2
import PackageDescription

let package = Package(
    name: "inspection-worker",
    dependencies: [
        // In a repository of its own: `.package(url: …, exact: …)`, the release that is installed.
        .package(name: "fieldpost", path: "../../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .systemLibrary(name: "CPDF", pkgConfig: "libpng", providers: [.apt(["libhpdf-dev", "libpng-dev"])]),
        .executableTarget(
            name: "InspectionWorker",
            dependencies: [
                "CPDF", .product(name: "DeviceClient", package: "fieldpost"),
                .product(name: "Integration", package: "fieldpost"), .product(name: "Logging", package: "swift-log"),
            ]),
    ])
