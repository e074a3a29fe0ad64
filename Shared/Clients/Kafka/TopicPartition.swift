internal import CKafka
internal import Glibc

/// One partition of one topic.
package struct TopicPartition: Hashable, Sendable, CustomStringConvertible {
    package let topic: String
    package let partition: Int32

    package init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    package var description: String { "\(topic)/\(partition)" }

    /// Returns the partition of a key with the producers' partitioner (`ClientProperties.producer`), the Java client's.
    package static func partition(ofKey key: [UInt8], count: Int32) -> Int32 {
        unsafe key.withUnsafeBytes {
            unsafe rd_kafka_msg_partitioner_murmur2(nil, $0.baseAddress, $0.count, count, nil, nil)
        }
    }
}

/// Owns one `rd_kafka_topic_partition_list_t`.
@safe struct PartitionList: ~Copyable {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    init(capacity: Int = 1) { unsafe pointer = rd_kafka_topic_partition_list_new(Int32(capacity)) }

    init(_ partitions: some Collection<TopicPartition>) {
        self.init(capacity: partitions.count)
        for partition in partitions { add(partition) }
    }

    deinit { unsafe rd_kafka_topic_partition_list_destroy(pointer) }

    func add(_ partition: TopicPartition, offset: Int64? = nil) {
        let element = unsafe rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition)
        if let offset { unsafe element?.pointee.offset = offset }
    }

    /// Throws the first element's error, if any.
    func check() throws(KafkaError) {
        for element in unsafe pointer.elements {
            try KafkaError.check(element.error, "\(element.partition): \(KafkaError(element.error).message)")
        }
    }
}

/// librdkafka's state of one partition.
struct PartitionElement {
    let partition: TopicPartition
    /// `nil` if there is none, such as for a partition without a committed offset.
    let offset: Int64?
    let error: rd_kafka_resp_err_t
}

extension UnsafeMutablePointer<rd_kafka_topic_partition_list_t> {
    var elements: [PartitionElement] {
        // Partitions of a topic are adjacent: its name is converted once for all of them.
        var topic = ""
        var topicPointer: UnsafeMutablePointer<CChar>?
        return unsafe UnsafeBufferPointer(start: pointee.elems, count: Int(pointee.cnt)).map { element in
            if unsafe topicPointer.map({ unsafe strcmp($0, element.topic) != 0 }) ?? true {
                unsafe topic = String(cString: element.topic)
                unsafe topicPointer = element.topic
            }
            return unsafe PartitionElement(
                partition: TopicPartition(topic: topic, partition: element.partition),
                offset: element.offset < 0 ? nil : element.offset, error: element.err)
        }
    }
}
