import BackendPoller

await BackendPollerService.run()
