internal import CKafka

extension Admin {
    /// Fetches the effective settings of topics (DescribeConfigs).
    ///
    /// - Returns: The settings or the error by topic; sensitive settings are absent.
    /// - Throws: If the broker does not respond, or the request is not supported.
    package borrowing func settings(
        of topics: [String]
    ) throws(KafkaError) -> [String: Result<[String: String], KafkaError>] {
        try settings(RD_KAFKA_RESOURCE_TOPIC, topics)
    }

    /// Fetches the effective settings of one broker.
    ///
    /// - Throws: If the broker does not respond or rejects the request, or the request is not supported.
    package borrowing func settings(ofBroker id: Int32) throws(KafkaError) -> [String: String] {
        guard let response = try settings(RD_KAFKA_RESOURCE_BROKER, [String(id)])[String(id)] else {
            throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no result for broker \(id)")
        }
        return try response.get()
    }

    private borrowing func settings(
        _ type: rd_kafka_ResourceType_t, _ names: [String]
    ) throws(KafkaError) -> [String: Result<[String: String], KafkaError>] {
        if names.isEmpty { return [:] }
        try requireController("describing settings is not supported")
        var resources = unsafe names.map { unsafe rd_kafka_ConfigResource_new(type, $0) }
        defer { unsafe rd_kafka_ConfigResource_destroy_array(&resources, resources.count) }
        let options = try unsafe AdminOptions(client.pointer, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, waitMaxMilliseconds)
        let queue = ResponseQueue(client)
        unsafe rd_kafka_DescribeConfigs(client.pointer, &resources, resources.count, options.pointer, queue.pointer)
        let response = try addingRejection { () throws(KafkaError) -> AdminResponse in
            try queue.response(waitMaxMilliseconds)
        }
        return response.settings
    }
}

extension AdminResponse {
    /// The settings in a response to DescribeConfigs, by resource.
    fileprivate var settings: [String: Result<[String: String], KafkaError>] {
        var count = 0
        let result = unsafe rd_kafka_event_DescribeConfigs_result(pointer)
        guard let resources = unsafe rd_kafka_DescribeConfigs_result_resources(result, &count) else { return [:] }
        var settings: [String: Result<[String: String], KafkaError>] = [:]
        for index in 0..<count {
            guard let resource = unsafe resources[index] else { continue }
            let name = unsafe String(cString: rd_kafka_ConfigResource_name(resource))
            let code = unsafe rd_kafka_ConfigResource_error(resource)
            let text = unsafe rd_kafka_ConfigResource_error_string(resource).map { unsafe String(cString: $0) }
            settings[name] =
                code == RD_KAFKA_RESP_ERR_NO_ERROR
                ? .success(unsafe Self.entries(of: resource)) : .failure(KafkaError(code, text))
        }
        return settings
    }

    private static func entries(of resource: OpaquePointer) -> [String: String] {
        var count = 0
        guard let entries = unsafe rd_kafka_ConfigResource_configs(resource, &count) else { return [:] }
        var values: [String: String] = [:]
        for index in 0..<count {
            guard let entry = unsafe entries[index], let value = unsafe rd_kafka_ConfigEntry_value(entry) else {
                continue
            }
            unsafe values[String(cString: rd_kafka_ConfigEntry_name(entry))] = String(cString: value)
        }
        return values
    }
}
