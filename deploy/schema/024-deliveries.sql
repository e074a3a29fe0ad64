-- Deliveries: notices that are carried outside, by webhook, e-mail and web push.

-- What an environment offers. Each secret is sealed with the configured key (AES-GCM).
CREATE TABLE backend.delivery (
    environment_id      int PRIMARY KEY REFERENCES realm.environment,
    -- The hosts that people's webhooks may be on; none: there are no webhooks.
    webhook_hosts       text[] NOT NULL DEFAULT '{}',
    webhook_secret      bytea,
    -- Whether webhooks and push services may have addresses that are not of the public Internet.
    allows_private      boolean NOT NULL DEFAULT false,
    -- smtp://host:port (STARTTLS) or smtps://host:port; null: there is no e-mail.
    smtp_url            text,
    smtp_user           text,
    smtp_password       bytea,
    mail_from           text,
    -- Whom a push service writes to, mailto: or https:; null: there is no web push.
    push_contact        text,
    -- What browsers bind their subscriptions to, and its private key.
    push_public_key     text,
    push_key            bytea,
    CHECK (webhook_hosts = '{}' OR webhook_secret IS NOT NULL),
    CHECK (smtp_url IS NULL OR mail_from IS NOT NULL),
    CHECK (smtp_user IS NULL OR smtp_password IS NOT NULL),
    CHECK (push_contact IS NULL OR (push_public_key IS NOT NULL AND push_key IS NOT NULL))
);

CREATE SCHEMA delivery;

-- One notice on its way to one target: an address, a webhook, a browser.
CREATE TABLE delivery.shipment (
    environment_id  int NOT NULL,
    realm_id        int NOT NULL,
    notice_id       uuid NOT NULL,
    -- Made of the way and where it leads.
    target_id       uuid NOT NULL,
    way             text NOT NULL CHECK (way IN ('webhook', 'email', 'push')),
    -- 'dropped': it was read, deleted, or is not wanted any more; 'failed': it was given up.
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'dropped', 'failed')),
    -- Whether it goes into one e-mail with all that is due at the same time.
    is_digest       boolean NOT NULL DEFAULT false,
    -- When it is planned for: at once, or a time of the day.
    due_at          timestamptz NOT NULL,
    -- When it is tried next.
    next_at         timestamptz NOT NULL,
    attempts        int NOT NULL DEFAULT 0,
    last_error      text,
    ended_at        timestamptz,
    PRIMARY KEY (environment_id, realm_id, notice_id, target_id),
    CHECK ((state = 'waiting') = (ended_at IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX ON delivery.shipment (environment_id, realm_id, next_at) WHERE state = 'waiting';
CREATE INDEX ON delivery.shipment (due_at) WHERE state = 'waiting';
CREATE INDEX ON delivery.shipment (ended_at) WHERE ended_at IS NOT NULL;
