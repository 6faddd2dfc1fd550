// Reports node's test results, one JSON object a line: pytest shows each as a test of its own.

export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details.type === "suite") continue;
    const error = data.details.error;
    const cause = error?.cause;
    yield `${JSON.stringify({
      name: data.name,
      passed: type === "test:pass" && !data.skip && !data.todo,
      why: cause?.stack ?? String(cause ?? error ?? ""),
    })}\n`;
  }
}
