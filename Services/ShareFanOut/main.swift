// Maintains the recipients' copies of shared appointments and notes. Consumes `share.events`.

import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

await serve("share-fan-out", settings: Setting.worker) { context in
    [try .workers(context, topics: [Topics.share]) { _ in ShareHandler() }]
}
