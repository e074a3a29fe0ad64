import ServiceSettings

/// The settings of `notice-deliverer`, in addition to those of all services.
enum Settings {
    static let callMax = Setting(
        "deliverer.call.max", .duration(.milliseconds(100) ... .seconds(20)), default: "10s",
        help: "timeout of calls to receivers, push services and mail servers")
    static let ageMax = Setting(
        "deliverer.age.max", .duration(.seconds(60) ... .seconds(14 * 86_400)), default: "2d",
        help: "time after its due time until a notice is given up")
    static let retryFirst = Setting(
        "deliverer.retry.first", .duration(.milliseconds(100) ... .seconds(3_600)), default: "15s",
        help: "first delay of the exponential backoff, which is limited to an hour")
    static let keep = Setting(
        "deliverer.keep", .duration(.seconds(15 * 86_400) ... .seconds(366 * 86_400)), default: "30d",
        help: "retention of delivery results, which prevent repeated deliveries")
    static let caFile = Setting(
        "deliverer.ca.file", .text(lengthMax: 4096), default: "",
        help: "PEM file of certificate authorities in addition to /etc/ssl/certs")

    static let all = Setting.worker + [.secretKeys, callMax, ageMax, retryFirst, keep, caFile]
}
