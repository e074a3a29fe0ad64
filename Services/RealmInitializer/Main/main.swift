import RealmInitializer

await RealmInitializerService.run()
