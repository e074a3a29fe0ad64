-- What is needed to tell how old something is.

-- When each client last sent something new: its answers are kept for a while after that.
ALTER TABLE device.client ADD changed_at timestamptz NOT NULL DEFAULT now();
