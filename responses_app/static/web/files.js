// Forms of the file pages, sent to the public API with the key of the signed-in browser: upload, new store, add a file.
import { Api } from "./chat/protocol.js";

const ACTIONS = {
  async upload(api, { form, files }) {
    for (const file of files) await upload(api(form.dataset.files), file, "user_data");
    location.assign(location.pathname);
  },
  async store(api, { form }) {
    const { id } = await post(api(form.dataset.stores), { name: form.elements.name.value });
    location.assign(`${location.pathname}/${id}`);
  },
  async add(api, { form, files }) {
    const ids = [];
    for (const file of files) ids.push((await upload(api(form.dataset.files), file, "assistants")).id);
    if (!files.length) ids.push(form.elements.file_id.value);
    for (const id of ids) await post(api(`${form.dataset.stores}/${form.dataset.store}/files`), { file_id: id });
    location.assign(location.pathname);
  },
};

const post = async (api, body) => (await api.request("", { method: "POST", body: JSON.stringify(body) })).json();

async function upload(api, file, purpose) {
  const body = new FormData();
  body.append("purpose", purpose);
  body.append("file", file);
  try {
    return await (await api.request("", { method: "POST", body })).json();
  } catch (error) {
    // One of several files: its name tells which.
    throw error instanceof TypeError ? error : new Error(`${file.name}: ${error.message}`);
  }
}

for (const form of document.querySelectorAll("form.change")) {
  const status = form.querySelector("[role=status]");
  const api = (base) => new Api(base, `${form.dataset.secret}?${new URLSearchParams({ project: form.elements.project.value })}`);
  const run = async (files) => {
    status.className = "quiet";
    status.textContent = files.length ? `Uploading ${files.length === 1 ? files[0].name : `${files.length} files`}…` : "…";
    try {
      await ACTIONS[form.dataset.action](api, { form, files });
    } catch (error) {
      status.className = "bad";
      status.textContent = error instanceof TypeError ? "Can’t reach the server." : error.message;
    }
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => (event.preventDefault(), run([])));
  const field = form.querySelector("[type=file]");
  field?.addEventListener("change", () => field.files.length && run([...field.files]).then(() => (field.value = "")));
}
