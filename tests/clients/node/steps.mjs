// Runs the steps of a driver one after the other, and prints what each came to as a line of JSON.

export async function step(name, run) {
  let said;
  try {
    said = await run();
  } catch (error) {
    said = { error: `${error?.constructor?.name}: ${error?.message}`, cause: String(error?.cause ?? '') };
  }
  console.log(JSON.stringify({ step: name, said: said ?? null }));
}

// The status and the code of the error that `run` must end with.
export async function failure(run) {
  try {
    await run();
  } catch (error) {
    return [error.status ?? error.statusCode, error.code ?? error.data?.error?.code];
  }
  return 'no error';
}

export const forecast = ({ city }) => `${city}: sunny`;
