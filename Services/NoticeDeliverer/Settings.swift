import ServiceSettings

/// What `notice-deliverer` can be told, beside what all services can.
enum Settings {
    static let callMax = Setting(
        "deliverer.call.max", .duration(.milliseconds(100) ... .seconds(20)), default: "10s",
        help: "the longest that a receiver, a push service or a mail server may take")
    static let ageMax = Setting(
        "deliverer.age.max", .duration(.seconds(60) ... .seconds(14 * 86_400)), default: "2d",
        help: "how long after it was due a notice is tried; then it is given up")
    static let retryFirst = Setting(
        "deliverer.retry.first", .duration(.milliseconds(100) ... .seconds(3_600)), default: "15s",
        help: "the wait after a first failure; it doubles up to an hour")
    static let keep = Setting(
        "deliverer.keep", .duration(.seconds(15 * 86_400) ... .seconds(366 * 86_400)), default: "30d",
        help: "how long it is remembered what came of a delivery: what is not remembered could be sent again")
    static let caFile = Setting(
        "deliverer.ca.file", .text(lengthMax: 4096), default: "",
        help: "PEM file of certificate authorities to trust beside those of /etc/ssl/certs")

    static let all = Setting.worker + [.secretKeys, callMax, ageMax, retryFirst, keep, caFile]
}
