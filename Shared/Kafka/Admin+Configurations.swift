internal import CKafka

extension Admin {
    /// How topics are set up, as the brokers have it (DescribeConfigs), with one request.
    ///
    /// - Returns: By topic, each setting's value by its name, for example `retention.ms`. A topic of which the broker
    ///   does not tell is absent.
    /// - Throws: When the broker did not answer, or does not know the request.
    package borrowing func configurations(
        of topics: some Collection<String>
    ) throws(KafkaError) -> [String: [String: String]] {
        if topics.isEmpty { return [:] }
        try checkHasController("what topics are set up with is not told")
        let options = try unsafe AdminOptions(client.pointer, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, waitMaxMilliseconds)
        let queue = AnswerQueue(client)
        var resources: [OpaquePointer?] = unsafe topics.map {
            unsafe rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0)
        }
        defer { unsafe rd_kafka_ConfigResource_destroy_array(&resources, resources.count) }
        unsafe rd_kafka_DescribeConfigs(
            client.pointer, &resources, resources.count, options.pointer, queue.pointer)
        return try queue.answer(waitMaxMilliseconds).configurations
    }
}

extension Answer {
    /// What an answer to DescribeConfigs says.
    fileprivate var configurations: [String: [String: String]] {
        var count = 0
        let result = unsafe rd_kafka_event_DescribeConfigs_result(pointer)
        guard let found = unsafe rd_kafka_DescribeConfigs_result_resources(result, &count) else { return [:] }
        var configurations: [String: [String: String]] = [:]
        for index in 0..<count {
            guard let resource = unsafe found[index],
                unsafe rd_kafka_ConfigResource_error(resource) == RD_KAFKA_RESP_ERR_NO_ERROR
            else { continue }
            var entryCount = 0
            let entries = unsafe rd_kafka_ConfigResource_configs(resource, &entryCount)
            var values: [String: String] = [:]
            for index in 0..<entryCount {
                guard let entry = unsafe entries?[index], let value = unsafe rd_kafka_ConfigEntry_value(entry)
                else { continue }
                values[unsafe String(cString: rd_kafka_ConfigEntry_name(entry))] = unsafe String(cString: value)
            }
            configurations[unsafe String(cString: rd_kafka_ConfigResource_name(resource))] = values
        }
        return configurations
    }
}
