#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

/* rd_kafka_producev takes variable arguments, which Swift does not import. Copies key and value; takes ownership of
 * the headers only if it succeeds. */
static inline rd_kafka_resp_err_t fieldpost_kafka_produce(
    rd_kafka_t *client, rd_kafka_topic_t *topic, const void *key, size_t key_size, const void *value,
    size_t value_size, rd_kafka_headers_t *headers, void *tag) {
    return rd_kafka_producev(
        client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(RD_KAFKA_PARTITION_UA),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
        RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(tag),
        RD_KAFKA_V_END);
}

/* Variable arguments, as above. Delays the mock cluster's next response to a request of this type by `milliseconds`. */
static inline rd_kafka_resp_err_t fieldpost_kafka_mock_delay(
    rd_kafka_mock_cluster_t *cluster, int16_t request, int milliseconds) {
    return rd_kafka_mock_broker_push_request_error_rtts(
        cluster, 1, request, 1, RD_KAFKA_RESP_ERR_NO_ERROR, milliseconds);
}
