-- Slots of pools that a fleet shares. A row counts while its worker holds the task: nothing has to be counted down.

CREATE TABLE slots (
    pool   text COLLATE "C" NOT NULL,
    task   text COLLATE "C" NOT NULL,
    step   text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    PRIMARY KEY (pool, task, step)
);
