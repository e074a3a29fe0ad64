import EntrySubmitter

await EntrySubmitterService.run()
