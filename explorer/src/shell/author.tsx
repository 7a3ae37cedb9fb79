/** Who writes. A server with tokens knows; where there are none, it is asked once and kept in this browser. */
import { useState } from "preact/hooks";
import { useHere } from "../context";
import { savedToken } from "../session";
import { Field } from "../ui/basics";

/** A field for a name, where nobody knows it yet. */
export function AuthorField() {
  const { access, author, setAuthor } = useHere();
  const [needed] = useState(author === "" && savedToken() !== null); // without a token, no name would be believed
  if (!needed || access === undefined) return null;
  return (
    <Field label="Your name" hint="Commits say who made them. It is asked once.">
      {(id, describedBy) => (
        <input
          id={id}
          autocomplete="name"
          maxLength={100}
          defaultValue={author}
          aria-describedby={describedBy}
          onChange={(event) => setAuthor(event.currentTarget.value.trim())}
        />
      )}
    </Field>
  );
}
