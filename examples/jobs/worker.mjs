// A worker for jobs in Node 18 or newer, without a dependency: node worker.mjs [QUEUE]
// MINUTEBOOK_URL and MINUTEBOOK_TOKEN say where the server is, and who asks.

const { MINUTEBOOK_URL: server, MINUTEBOOK_TOKEN: token } = process.env;
const queue = process.argv[2] ?? "quick";
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));

async function ask(path, said) {
  const answer = await fetch(server + path, {
    method: said ? "POST" : "GET",
    headers: { Authorization: `Bearer ${token}` },
    body: said && JSON.stringify(said),
    signal: AbortSignal.timeout(60_000),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return answer.status === 200 ? answer.json() : null;
}

// Do the work of a job; return its figures. Yours goes here.
async function work(job) {
  const answer = await fetch(job.url, { signal: AbortSignal.timeout(20_000) });
  if (!answer.ok) throw new Error(`${job.url} answered ${answer.status}`);
  return { bytes: (await answer.arrayBuffer()).byteLength };
}

for (;;) {
  try {
    const job = await ask(`/jobs/next?queue=${queue}`);
    if (!job) continue;
    const report = await work(job).then(
      (result) => ["complete", { result }],
      (error) => ["error", { error: String(error) }],
    );
    await ask(`/jobs/${job.id}/${report[0]}`, { lease: job.lease, ...report[1] });
    console.log(report[0], job.url);
  } catch (error) {
    // 409: another worker got the job meanwhile. 503: the server stops; ask again.
    console.error(error.message);
    await pause(1000);
  }
}
