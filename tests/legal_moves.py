"""Every database of the tests refuses a move of an operation that is not in the table of moves."""

import sqlalchemy as sa

from models.operation import LEGAL_MOVES

MOVES = ", ".join(
    f"'{state}>{target}'"
    for state, targets in LEGAL_MOVES.items()
    for target in sorted({state, *targets})
)
# What is no state at all is refused by the table's own constraint.
STATES = ", ".join(f"'{state}'" for state in LEGAL_MOVES)
SQLITE = f"""
CREATE TRIGGER legal_moves BEFORE UPDATE OF state ON operations
WHEN NEW.state IN ({STATES}) AND OLD.state || '>' || NEW.state NOT IN ({MOVES})
BEGIN
  SELECT RAISE(ABORT, 'illegal move of an operation');
END
"""
POSTGRESQL = f"""
CREATE FUNCTION legal_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state IN ({STATES}) AND OLD.state || '>' || NEW.state NOT IN ({MOVES}) THEN
    RAISE EXCEPTION 'illegal move of operation %%: %% to %%', OLD.id, OLD.state, NEW.state;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER legal_moves BEFORE UPDATE OF state ON operations
FOR EACH ROW EXECUTE FUNCTION legal_moves();
"""


def hold_to_legal_moves(engine: sa.Engine) -> None:
    """Let the database refuse what `models.operation.LEGAL_MOVES` does not have."""
    with engine.begin() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        connection.exec_driver_sql(SQLITE if is_sqlite else POSTGRESQL)
