import Acme
import BackendPoller
import Backends
import EntrySubmitter
import Fieldpost
import Foundation
import RealmInitializer

let acme = BackendKind(name: "acme", needsUser: false) { access in
    acmeBackend(at: access.url, token: access.password, callMax: access.callMax)
}

// One executable replaces four of Fieldpost's: it has a link under the name of each.
let program = URL(fileURLWithPath: CommandLine.arguments[0]).lastPathComponent
switch program {
case "backend-poller": await BackendPollerService.run(adapters: [acme])
case "entry-submitter": await EntrySubmitterService.run(adapters: [acme])
case "realm-initializer": await RealmInitializerService.run(adapters: [acme])
case "fieldpost": await FieldpostCommandLine.run(adapters: [acme])
default:
    print("run it as backend-poller, entry-submitter, realm-initializer or fieldpost, not as \(program)")
    exit(2)
}
