import Fieldpost

await FieldpostCommandLine.run()
